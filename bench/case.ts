import type { SelectedDriver } from "../dist/index.js";
import type { Cores } from "./machine.js";
import type { WorkerProcess } from "./processes/worker-process.js";

/** What one contender did in one round. */
export interface Sample {
  /** In the row's unit. */
  readonly value: number;
  /** CPU time of the server for one of what the row counts, in microseconds; null where it was not measured. */
  readonly cpuMicros?: number | null;
  /** Share of its core that the load generator used, 0 to 1: near 1 it was the limit, not the server. */
  readonly loadCpu?: number;
  /** Further figures by name, their unit in the name. */
  readonly more?: Readonly<Record<string, number>>;
}

export interface Contender {
  readonly name: string;
  measure(): Promise<Sample>;
}

/** The product's ratio to a baseline, as the median of the rounds. */
interface RatioTarget {
  readonly against: string;
  readonly atLeast: number;
}

/** A figure of the product, or a derived one, that has to stay below a limit: its median, or every round of it. */
interface LimitTarget {
  /** The row's unit for the value itself. */
  readonly figure: string;
  readonly below: number;
  readonly of: "median" | "max";
}

export type Target = RatioTarget | LimitTarget;

/** Contenders that do the same, measured in turn. */
export interface Row {
  readonly name: string;
  readonly unit: string;
  readonly better: "more" | "less";
  /** The product first, then its baselines. */
  readonly contenders: readonly [Contender, ...Contender[]];
  readonly targets?: readonly Target[];
  /** Figures made of all contenders' samples of one round, by contender. */
  readonly derive?: (round: ReadonlyMap<string, Sample>) => Readonly<Record<string, number>>;
  /** Fewer rounds than asked for, where one takes long. */
  readonly atMostRounds?: number;
  /** Whether each contender runs once before the rounds, so that none is measured cold; true unless given. */
  readonly warmUp?: boolean;
  /** Said below the row's table. */
  readonly note?: string;
}

/** A row that cannot be measured here. */
export interface Skipped {
  readonly name: string;
  readonly skipped: string;
}

/** What a case has to measure with. */
export interface Bench {
  /** How long one measurement lasts. */
  readonly seconds: number;
  /** Sizes that say nothing but that everything works. */
  readonly isTiny: boolean;
  readonly cores: Cores;
  /** The load generator, on the other core. */
  readonly load: WorkerProcess;
  /** Of the runner, which exports the memory: no process may open its own handles. */
  readonly driver: SelectedDriver;
  /** Where servers leave their CPU profiles, or null. */
  readonly profileFolder: string | null;
  /** Says what takes long. */
  progress(text: string): void;
}

/** One file of cases/. */
export interface Case {
  readonly name: string;
  readonly title: string;
  /** What a row needs is there from when it is yielded until the next one is asked for. */
  rows(bench: Bench): AsyncGenerator<Row | Skipped>;
}
