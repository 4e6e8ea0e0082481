import type { RegionStatus } from "./region.js";
import { compareRegionNames } from "./region-name.js";
import type { Registration } from "./registration.js";

/**
 * The visible regions, sorted by the bytes of their names. A change costs nothing: the list is brought up to
 * date when it is asked for, by a merge, so that only what is new is sorted.
 */
export class RegionList {
  #sorted: Registration[] = [];
  readonly #added = new Set<Registration>();
  #statuses: readonly RegionStatus[] | undefined = [];

  add(registration: Registration): void {
    this.#added.add(registration);
    this.#statuses = undefined;
  }

  /** To be called after `registration` changed. */
  update(registration: Registration): void {
    if (registration.state === "gone") this.#added.delete(registration);
    this.#statuses = undefined;
  }

  statuses(): readonly RegionStatus[] {
    this.#statuses ??= this.#refresh().map((registration) => registration.status);
    return this.#statuses;
  }

  #refresh(): Registration[] {
    const added = [...this.#added].sort((a, b) => compareRegionNames(a.name, b.name));
    const merged: Registration[] = [];
    let next = 0;
    for (const registration of this.#sorted) {
      if (registration.state === "gone") continue;
      for (let other = added[next]; other && compareRegionNames(other.name, registration.name) < 0; ) {
        merged.push(other);
        other = added[++next];
      }
      merged.push(registration);
    }
    this.#sorted = merged.concat(added.slice(next));
    this.#added.clear();
    return this.#sorted;
  }
}
