import { type Fleet, loadFleet } from "@guidevane/core";
import { type Gateway, startGateway } from "../gateway.ts";
import type { GatewayOptions } from "../gateway-options.ts";
import type { Logger } from "../logger.ts";

/** A fleet of one cluster with these engines, all of model `m`. `extra` is YAML of further top-level keys. */
export function fleetOf(
  engines: Readonly<Record<string, string>>,
  extra = "",
  engineKeys = "",
  models = "[m]",
): Promise<Fleet> {
  const lines = Object.entries(engines).map(
    ([id, url]) => `  ${id}: { url: "${url}", region: here, models: ${models}, capacityWps: 10${engineKeys} }`,
  );
  const text = `clusters: { east: { region: here } }\nengines:\n${lines.join("\n")}\n${extra}\n`;
  return loadFleet(text, "fleet.yaml", () => Promise.reject(new Error("no files here")));
}

export const silent: Logger = { info() {}, warn() {}, error() {} };

export function startTestGateway(fleet: Fleet, options: Partial<GatewayOptions> = {}): Promise<Gateway> {
  return startGateway({
    fleet,
    cluster: "east",
    listen: "127.0.0.1:0",
    admin: "127.0.0.1:0",
    logger: silent,
    ...options,
  });
}
