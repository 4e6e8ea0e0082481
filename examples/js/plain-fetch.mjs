// Registers another process's GPU memory over HTTP with nothing but fetch.
//
//   npx cudashm allocate --bytes 4096 | tee region.json   in one terminal: allocates, and holds until Ctrl-C
//   node examples/js/plain-fetch.mjs region.json          in another one
//
// The service has to run; its URL may follow as the second argument.
import { readFile } from "node:fs/promises";

const [file = "region.json", baseUrl = "http://127.0.0.1:8000"] = process.argv.slice(2);

async function call(method, path, body) {
  const answer = await fetch(baseUrl + path, { method, body });
  const text = await answer.text();
  // Success is exactly 200. Every other answer is {"error":"..."}.
  if (answer.status !== 200) throw new Error(`${answer.status}: ${JSON.parse(text).error}`);
  return text;
}

// Check names that come from elsewhere: fetch folds `/region/../unregister` into the path that unregisters all.
const region = `/v2/cudasharedmemory/region/${encodeURIComponent("example/plain fetch")}`;

await call("POST", `${region}/register`, await readFile(file, "utf8"));
try {
  // JSON.parse rounds a byte_size above 2^53; the typed client does not.
  console.log(`registered: ${await call("GET", `${region}/status`)}`);
} finally {
  await call("POST", `${region}/unregister`);
}
console.log(`regions left: ${await call("GET", "/v2/cudasharedmemory/status")}`);
