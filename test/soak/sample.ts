/** What a service under steady load was seen to have: after some of that load, once its clients were gone. */
export interface Sample {
  /** Seconds since the load began. */
  readonly at: number;
  readonly residentBytes: number;
  readonly heapBytes: number;
  readonly files: number;
  /** How late the event loop was at most, in milliseconds, in 99 of 100 looks at it since the last sample. */
  readonly loopDelayMs: number;
  /** Regions there were before all were unregistered. */
  readonly regions: number;
  /** Opens less closes, after that. */
  readonly openHandles: number;
  readonly requestsPerSecond: number;
  /** Answers since the last sample that should not have been. */
  readonly errors: number;
}

export function lineOf(sample: Sample): string {
  const mebibytes = (bytes: number) => (bytes / 1024 / 1024).toFixed(1);
  return [
    `${sample.at.toFixed(0)} s`.padStart(8),
    `RSS ${mebibytes(sample.residentBytes)} MiB`,
    `heap ${mebibytes(sample.heapBytes)} MiB`,
    `files ${sample.files}`,
    `event loop p99 ${sample.loopDelayMs.toFixed(1)} ms`,
    `regions ${sample.regions}`,
    `opens - closes ${sample.openHandles}`,
    `${sample.requestsPerSecond.toFixed(0)} requests/s`,
    `errors ${sample.errors}`,
  ].join("  ");
}
