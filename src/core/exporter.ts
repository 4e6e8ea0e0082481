/** A process that exports memory, told apart from every other that ever had its number. */
export interface Exporter {
  readonly pid: number;
  /** Clock ticks from the boot to its start, field 22 of `/proc/<pid>/stat`. */
  readonly startTime: bigint;
  /** Which boot of the machine: `/proc/sys/kernel/random/boot_id`. */
  readonly bootId: string;
  /** Where the pid counts: the inode of `/proc/<pid>/ns/pid`. */
  readonly pidNamespace: bigint;
}

/** The port to the processes of the machine. */
export interface ExporterWatch {
  /**
   * Calls `onExit` once when the exporter has exited, unless the returned function was called before. Rejects
   * with FAILED_PRECONDITION if there is no such process.
   */
  watch(exporter: Exporter, onExit: () => void): Promise<() => void>;
}

/** Whether both are the same process. */
export function isSameExporter(a: Exporter | null, b: Exporter | null): boolean {
  if (a === null || b === null) return a === b;
  return (
    a.pid === b.pid &&
    a.startTime === b.startTime &&
    a.bootId === b.bootId &&
    a.pidNamespace === b.pidNamespace
  );
}
