import { metadataOf, registryClient } from "./grpc-client.js";

/** A change as the stream of changes tells it. */
export interface SeenChange {
  readonly kind: string;
  readonly reason: string;
  readonly name: string;
  readonly generation: number;
}

interface Message {
  readonly start?: object;
  readonly change?: {
    readonly kind: string;
    readonly reason: string;
    readonly region: { readonly name: string; readonly generation: string };
  };
}

interface Waiting {
  isMet(changes: readonly SeenChange[]): boolean;
  resolve(): void;
}

/** Whoever watches every change at a service. */
export class Watcher implements Disposable {
  readonly #client: ReturnType<typeof registryClient>;
  readonly #changes: SeenChange[] = [];
  #waiting: readonly Waiting[] = [];

  private constructor(client: ReturnType<typeof registryClient>) {
    this.#client = client;
  }

  /** Resolves once every change from now on will be seen. */
  static open(address: string): Promise<Watcher> {
    const client = registryClient(address);
    const watcher = new Watcher(client);
    const stream = client.Watch({}, metadataOf({ token: null, session: null }));
    return new Promise((resolve, reject) => {
      stream.on("error", reject).on("data", ({ start, change }: Message) => {
        if (start !== undefined) resolve(watcher);
        if (change !== undefined) watcher.#see(change);
      });
    });
  }

  /** The changes of a region so far, as `kind reason`, without what all have in common. */
  of(name: string): readonly string[] {
    return this.#changes.flatMap((change) => (change.name === name ? [textOf(change)] : []));
  }

  /** Resolves once all changes together meet the condition. */
  until(isMet: (changes: readonly SeenChange[]) => boolean): Promise<void> {
    if (isMet(this.#changes)) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiting = [...this.#waiting, { isMet, resolve }];
    });
  }

  /** Resolves once the region is unregistered. */
  untilGone(name: string): Promise<void> {
    return this.until(() => this.of(name).at(-1)?.startsWith("unregistered ") === true);
  }

  [Symbol.dispose](): void {
    this.#client.close();
  }

  #see({ kind, reason, region }: NonNullable<Message["change"]>): void {
    this.#changes.push({ kind, reason, name: region.name, generation: Number(region.generation) });
    this.#waiting = this.#waiting.filter(({ isMet, resolve }) => {
      if (!isMet(this.#changes)) return true;
      resolve();
      return false;
    });
  }
}

function textOf({ kind, reason }: SeenChange): string {
  const short = (text: string, prefix: string) => text.slice(prefix.length).toLowerCase();
  return `${short(kind, "CHANGE_KIND_")} ${short(reason, "REASON_")}`;
}
