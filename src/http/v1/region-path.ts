import { assertRegionName } from "../../core/region-name.js";
import { nameInPath } from "../request-target.js";

/** Where the regions are, in full. */
export const regionsPath = "/v1/regions";

/** The region that a path below {@link regionsPath} is about. Throws INVALID_ARGUMENT if no region can be called so. */
export function regionNameIn(path: string): string {
  const name = nameInPath(path, `${regionsPath}/`);
  assertRegionName(name);
  return name;
}
