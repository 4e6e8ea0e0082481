import type { ClientReadableStream, ServiceError } from "@grpc/grpc-js";
import { metadataOf, registryClient } from "../kill/grpc-client.js";

interface Message {
  readonly start?: object;
  readonly change?: Change;
}

interface Change {
  readonly kind: string;
  readonly revision: string;
  readonly region: { readonly name: string; readonly generation?: string; readonly state: string };
}

/** A region as its last change told it. */
export interface BookedRegion {
  readonly generation: number;
  readonly state: string;
}

/** What a watch of all changes tells, and what there has to be by it. */
export class ChangeBook implements Disposable {
  readonly #client: ReturnType<typeof registryClient>;
  readonly #stream: ClientReadableStream<unknown>;
  readonly #regions = new Map<string, BookedRegion>();
  readonly #generations = new Set<number>();
  readonly #problems: string[] = [];
  #revision = 0n;
  #changes = 0;
  #isClosed = false;
  #waiting: { readonly isMet: () => boolean; readonly resolve: () => void }[] = [];

  private constructor(address: string) {
    this.#client = registryClient(address);
    this.#stream = this.#client.Watch({}, metadataOf({ token: null, session: null }));
  }

  /** Resolves once every change from now on will be told. There may be no region yet. */
  static open(address: string): Promise<ChangeBook> {
    const book = new ChangeBook(address);
    return new Promise((resolve, reject) => {
      book.#stream.on("data", ({ start, change }: Message) => {
        if (start !== undefined) resolve(book);
        if (change !== undefined) book.#enter(change);
      });
      book.#stream.on("error", (error: ServiceError) => {
        if (!book.#isClosed) book.#problems.push(`the watch ended: ${error.message}`);
        reject(error);
      });
    });
  }

  /** What was told that cannot be. */
  get problems(): readonly string[] {
    return this.#problems;
  }

  get changes(): number {
    return this.#changes;
  }

  /** What there is, by name. */
  get regions(): ReadonlyMap<string, BookedRegion> {
    return this.#regions;
  }

  /** Whether a region of that generation was ever told of. */
  knows(generation: number): boolean {
    return this.#generations.has(generation);
  }

  /** Resolves once the region of that name and generation has come and gone. */
  untilGone(name: string, generation: number): Promise<void> {
    const isMet = () => this.knows(generation) && this.#regions.get(name)?.generation !== generation;
    if (isMet()) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiting.push({ isMet, resolve });
    });
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    this.#stream.cancel();
    this.#client.close();
  }

  #enter({ kind, revision, region }: Change): void {
    this.#changes++;
    const { name } = region;
    // A dry run has none; one that could not be closed is told of all the same.
    const generation = Number(region.generation ?? 0);
    const told = `revision ${revision}, ${kind} of ${name}, generation ${generation}`;
    if (BigInt(revision) <= this.#revision) this.#problems.push(`${told} comes after ${this.#revision}`);
    this.#revision = BigInt(revision);
    const known = this.#regions.get(name);
    if (known?.generation !== generation) {
      // One that was given up, and that the driver would not close, was never registered.
      const begins = kind === "CHANGE_KIND_REGISTERED" || kind === "CHANGE_KIND_CLOSE_FAILED";
      if (known !== undefined || !begins) {
        this.#problems.push(`${told}: there is ${known?.generation ?? "none"}`);
      }
      if (generation > 0 && this.#generations.has(generation)) this.#problems.push(`${told}: once more`);
      this.#generations.add(generation);
    } else if (kind === "CHANGE_KIND_REGISTERED") this.#problems.push(`${told}: it is there`);
    if (kind === "CHANGE_KIND_UNREGISTERED") this.#regions.delete(name);
    else this.#regions.set(name, { generation, state: region.state });
    this.#waiting = this.#waiting.filter(({ isMet, resolve }) => {
      if (!isMet()) return true;
      resolve();
      return false;
    });
  }
}
