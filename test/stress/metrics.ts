import { get } from "node:http";

/** What the service's metrics told at a moment. */
export class Metrics {
  readonly #values: ReadonlyMap<string, number>;

  private constructor(values: ReadonlyMap<string, number>) {
    this.#values = values;
  }

  /** Asks on a connection of its own, which is closed when it is answered. */
  static async read(url: string): Promise<Metrics> {
    const text = await new Promise<string>((resolve, reject) => {
      get(url, { agent: false }, (answer) => {
        let received = "";
        answer.setEncoding("utf8").on("data", (piece: string) => {
          received += piece;
        });
        answer.on("error", reject).on("close", () => resolve(received));
      }).on("error", reject);
    });
    const samples = [...text.matchAll(/^([a-z0-9_]+(?:\{[^}]*\})?) (\S+)$/gm)];
    return new Metrics(new Map(samples.map(([, sample = "", value]) => [sample, Number(value)])));
  }

  /** The sum of a metric over all its labels; 0 if there is none of it. */
  sum(name: string): number {
    let sum = 0;
    for (const [sample, value] of this.#values) if (sample.split("{", 1)[0] === name) sum += value;
    return sum;
  }

  /** One sample, such as `nodejs_active_resources{type="Timeout"}`; 0 if there is none. */
  value(sample: string): number {
    return this.#values.get(sample) ?? 0;
  }
}
