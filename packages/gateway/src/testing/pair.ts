import type { Fleet } from "@guidevane/core";
import type { Gateway } from "../gateway.ts";
import type { GatewayOptions } from "../gateway-options.ts";
import { fleetOf } from "./fleet.ts";
import type { ScriptedEngine } from "./scripted-engine.ts";
import { snapshotOf } from "./snapshot.ts";

interface Starts {
  gateway(fleet: Fleet, options?: Partial<GatewayOptions>): Promise<Gateway>;
}

/** A gateway whose requests all have engine `a` for home, and `b` for the next choice. */
export async function beforePair(
  setup: Starts,
  [a, b]: readonly [ScriptedEngine | string, ScriptedEngine | string],
  extra = "",
  options: Partial<GatewayOptions> = {},
): Promise<Gateway> {
  const urlOf = (engine: ScriptedEngine | string): string => (typeof engine === "string" ? engine : engine.url);
  const fleet = await fleetOf({ a: urlOf(a), b: urlOf(b) }, extra);
  const gateway = await setup.gateway(fleet, options);
  await gateway.offer(JSON.stringify(snapshotOf(fleet, { version: 1 }, { a: 1, b: 0 })));
  return gateway;
}
