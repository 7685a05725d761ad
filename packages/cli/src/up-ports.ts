import { createServer } from "node:net";
import type { Fleet } from "@guidevane/core";
import { badUsage } from "./exit-code.ts";

/** Ports of everything that `up` starts, all counted from one. */
export interface UpPorts {
  /** By cluster. */
  readonly gateways: ReadonlyMap<string, number>;
  readonly gatewayAdmins: ReadonlyMap<string, number>;
  readonly control: number;
  /** By engine id. */
  readonly engines: ReadonlyMap<string, number>;
}

/** Gateways on `port`, +1, +2 …; control on +90; gateways' admin on +100 …; emulated engines on +200 …. @throws GuidevaneError `bad_usage` */
export function planPorts(fleet: Fleet, port: number): UpPorts {
  if (fleet.clusters.size > CONTROL_AT)
    badUsage("--fleet", String(fleet.clusters.size), `\`up\` holds ${CONTROL_AT} clusters`);
  const last = port + ENGINES_AT + fleet.engines.size;
  if (port < 1 || last > 65_535)
    badUsage("--port", String(port), `needs ${ENGINES_AT + fleet.engines.size} ports above it, and not 0`);
  const from = (names: Iterable<string>, first: number) =>
    new Map([...names].map((name, index) => [name, first + index] as const));
  return {
    gateways: from(fleet.clusters.keys(), port),
    gatewayAdmins: from(fleet.clusters.keys(), port + ADMINS_AT),
    control: port + CONTROL_AT,
    engines: from(fleet.engines.keys(), port + ENGINES_AT),
  };
}

/** Ports of the plan that another program holds, lowest first. */
export async function takenPorts(ports: UpPorts): Promise<number[]> {
  const all = [ports.control, ...ports.gateways.values(), ...ports.gatewayAdmins.values(), ...ports.engines.values()];
  const free = await Promise.all(all.map((port) => isFree(port)));
  return all.filter((_, index) => !free[index]).sort((a, b) => a - b);
}

const CONTROL_AT = 90;
const ADMINS_AT = 100;
const ENGINES_AT = 200;

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    // Whatever keeps us from listening keeps the child from it too.
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
