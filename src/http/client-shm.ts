import { RegistryError } from "../core/errors.js";
import { clientShmDisabledText, type FaceContext } from "../core/face-context.js";

/** Throws UNIMPLEMENTED where registers are switched off. */
export function assertClientShm({ allowClientShm }: FaceContext): void {
  if (!allowClientShm) throw new RegistryError("UNIMPLEMENTED", clientShmDisabledText);
}
