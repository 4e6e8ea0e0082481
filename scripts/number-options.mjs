import { parseArgs } from "node:util";

/**
 * The numbers that the arguments of `npm run <command>` give, by name. Each of `options` says the `usual` one, the `most`
 * it may be, whether it `isWhole`, and its `meaning`. Where the arguments are wrong, says why and how the command is
 * used, and ends the process with 2.
 */
export function readNumberOptions(command, options) {
  const given = parse(command, options);
  return Object.fromEntries(
    Object.entries(options).map(([name, { usual, most, isWhole }]) => {
      const text = given[name] ?? String(usual);
      const number = (isWhole ? /^\d{1,10}$/ : /^\d{1,10}(\.\d+)?$/).test(text) ? Number(text) : 0;
      if (number > 0 && number <= most) return [name, number];
      return refuse(
        command,
        options,
        `--${name} must be ${isWhole ? "a whole number" : "a number"} above 0, at most ${most}`,
      );
    }),
  );
}

function parse(command, options) {
  try {
    const accepted = Object.keys(options).map((name) => [name, { type: "string" }]);
    return parseArgs({ options: Object.fromEntries(accepted) }).values;
  } catch (error) {
    return refuse(command, options, error.message);
  }
}

function refuse(command, options, problem) {
  process.stderr.write(`${command}: ${problem}\n`);
  const shown = Object.keys(options).map((name) => `[--${name} N]`);
  process.stderr.write(`usage: npm run ${command} -- ${shown.join(" ")}\n`);
  for (const [name, { usual, meaning }] of Object.entries(options)) {
    process.stderr.write(`  --${name.padEnd(9)}${meaning} (${usual})\n`);
  }
  process.exit(2);
}
