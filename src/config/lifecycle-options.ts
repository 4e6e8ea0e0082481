import { boolean, integer, oneOf, optional, text } from "./option.js";

/** Who may change whose regions, and what ends one besides its unregister. */
export const lifecycleOptions = {
  access: {
    flag: "access",
    kind: oneOf("shared", "owner"),
    default: "shared",
    group: "Lifecycle",
    help: "owner: a region is seen and changed by its owner, a token's name or a session, and by administrators. shared: by everyone, as with Triton, but for its contents. Callers with neither are one owner, whose regions are everyone's to change.",
  },
  unregisterAll: {
    flag: "unregister-all",
    kind: oneOf("all", "own", "none"),
    default: "all",
    group: "Lifecycle",
    help: "What an unregister without a name closes: every region that the caller may, as Triton's does; those that he owns; or nothing, it is refused.",
  },
  stateFile: {
    flag: "state-file",
    kind: optional(text("PATH")),
    default: null,
    group: "Lifecycle",
    help: "Keep regions in this file and open them again at the next start, if their exporters still live. It has their handles: made for its owner alone, it must stay so. Without it regions end with the service.",
  },
  adoptUnverified: {
    flag: "adopt-unverified",
    kind: boolean,
    default: false,
    group: "Lifecycle",
    help: "With --state-file, also open regions of which no exporter is known: nothing proves that the memory is still the same.",
  },
  orphanGraceSecs: {
    flag: "orphan-grace-secs",
    kind: integer(0, 86_400, "SECONDS"),
    default: 30,
    group: "Lifecycle",
    help: "How long a region stays readable after its exporter exited, before it is unregistered.",
  },
} as const;

/** What is wrong with options of the lifecycle that are each right. */
export function lifecycleProblems(config: {
  readonly adoptUnverified: boolean;
  readonly stateFile: string | null;
}): string[] {
  if (!config.adoptUnverified || config.stateFile !== null) return [];
  return ["--adopt-unverified is for the regions of a --state-file: give one, or drop it"];
}
