import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const parser = fileURLToPath(new URL("parse.py", import.meta.url));

interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Null for NaN and the infinities. */
  readonly value: number | null;
}

export interface Family {
  /** Without the `_total` of a counter. */
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly samples: readonly Sample[];
}

/** What one scrape told, as Prometheus's own parser reads it. */
export class Scrape {
  readonly families: readonly Family[];

  private constructor(families: readonly Family[]) {
    this.families = families;
  }

  /** Reads the text of a scrape with `python`, which has prometheus_client. */
  static parse(python: string, text: string): Scrape {
    const { status, stdout, stderr } = spawnSync(python, [parser], { input: text, encoding: "utf8" });
    if (status !== 0) throw new Error(`no Prometheus text: ${stderr}`);
    return new Scrape(JSON.parse(stdout) as Family[]);
  }

  /** The value of the one sample of that name with these labels, or null. */
  value(name: string, labels: Readonly<Record<string, string>> = {}): number | null {
    const found = this.samples(name).filter((sample) =>
      Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
    );
    if (found.length > 1)
      throw new Error(`${found.length} samples of ${name} have ${JSON.stringify(labels)}`);
    return found[0]?.value ?? null;
  }

  samples(name: string): readonly Sample[] {
    return this.families.flatMap(({ samples }) => samples).filter((sample) => sample.name === name);
  }
}
