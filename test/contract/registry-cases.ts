import { contentsCases } from "./registry-cases/contents.js";
import { exporterCases } from "./registry-cases/exporters.js";
import { leaseCases } from "./registry-cases/leases.js";
import { listCases } from "./registry-cases/listing.js";
import { ownerCases } from "./registry-cases/owners.js";
import { placeCases } from "./registry-cases/places.js";
import { registerCases } from "./registry-cases/registering.js";
import { replaceCases } from "./registry-cases/replacing.js";
import { sessionCases } from "./registry-cases/sessions.js";
import { tritonCases } from "./registry-cases/triton.js";
import { unregisterCases } from "./registry-cases/unregistering.js";
import { viewCases } from "./registry-cases/views.js";
import { watchCases } from "./registry-cases/watching.js";
import type { RegistryCase } from "./registry-fixture.js";

/** What both faces promise besides Triton's calls; the suite runs every case through HTTP and through gRPC. */
export const registryCases: readonly RegistryCase[] = [
  ...viewCases,
  ...listCases,
  ...registerCases,
  ...placeCases,
  ...exporterCases,
  ...leaseCases,
  ...replaceCases,
  ...tritonCases,
  ...unregisterCases,
  ...watchCases,
  ...contentsCases,
  ...ownerCases,
  ...sessionCases,
];
