import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { type Fleet, parseYaml } from "@guidevane/core";
import type { UpPorts } from "./up-ports.ts";

/** The three-cluster example, shipped with this package. */
export const DEFAULT_FLEET: string = fileURLToPath(new URL("../fleets/three-clusters/fleet.yaml", import.meta.url));

/**
 * The part of a fleet's demand and capacities that this machine can carry, 1 when it can carry all: driver, gateways and
 * engines share its cores.
 */
export function scaleFactor(fleet: Fleet, cores: number): number {
  let chunksPerS = 0;
  for (const byClass of fleet.demandRps.values()) {
    for (const [name, rateRps] of byClass)
      chunksPerS += rateRps * (REQUEST_CHUNKS + (fleet.classes.get(name)?.outputTokens ?? 0) / 2);
  }
  const factor = (cores * CHUNKS_PER_CORE_S) / chunksPerS;
  // Two digits, so that the printed factor is the one used.
  return factor >= 1 ? 1 : Math.max(0.01, Math.floor(factor * 100) / 100);
}

/** A request without its tokens costs about as much as this many chunks of a stream; half of the requests stream. */
const REQUEST_CHUNKS = 16;
const CHUNKS_PER_CORE_S = 1440;

/**
 * The text of a fleet file that says what `file` says, with engines on the ports of this run, capacities and demand times
 * `factor`, and its files named from anywhere. JSON, which is YAML too.
 */
export function rewriteFleet(text: string, file: string, fleet: Fleet, ports: UpPorts, factor: number): string {
  const document = parseYaml(text, file, "bad_fleet") as FleetText;
  const folder = dirname(resolve(file));
  for (const [id, engine] of Object.entries(document.engines ?? {})) {
    engine.url = `http://127.0.0.1:${ports.engines.get(id)}`;
    engine.capacityWps = fleet.engines.get(id)!.capacityWps * factor;
    // An emulated engine asks for no key and has everything on one port.
    delete engine.auth;
    delete engine.tls;
    delete engine.health?.port;
    delete engine.metrics?.port;
  }
  // Nor does the driver bring one, and people who try the fleet out should not need to.
  delete document.gateway?.clientKeys;
  // The driver adds the round trips, so that gateways see shorter streams at far engines than the plan takes them for.
  document.gateway = { ...document.gateway, placement: "home" };
  for (const profile of Object.values(document.profiles ?? {})) profile.file = resolve(folder, profile.file);
  if (document.network?.file !== undefined) document.network.file = resolve(folder, document.network.file);
  for (const byClass of Object.values(document.demandRps ?? {})) {
    for (const [name, rateRps] of Object.entries(byClass)) byClass[name] = rateRps * factor;
  }
  return JSON.stringify(document, null, 2);
}

/** What of a checked fleet file is changed here. */
interface FleetText {
  engines?: Record<
    string,
    { url: string; capacityWps?: number; auth?: unknown; tls?: unknown; health?: Ported; metrics?: Ported }
  >;
  profiles?: Record<string, { file: string }>;
  network?: { file?: string };
  gateway?: { clientKeys?: unknown; placement?: "home" };
  demandRps?: Record<string, Record<string, number>>;
}

interface Ported {
  port?: number;
}
