import type { Fleet } from "@guidevane/core";
import { cellKey, type PlanInputs } from "@guidevane/optimizer";

/** What a plan would start from were everything as the fleet file says: its demand, every engine ready and healthy. */
export function planInputs(fleet: Fleet): PlanInputs {
  const demandRps = new Map<string, number>();
  for (const [cluster, byClass] of fleet.demandRps)
    for (const [requestClass, rps] of byClass) demandRps.set(cellKey(cluster, requestClass), rps);
  return { wallMs: 0, fleet, demandRps, engines: new Map(), gateways: new Map() };
}
