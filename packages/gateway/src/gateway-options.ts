import { type Clock, type Fleet, GuidevaneError, type Random } from "@guidevane/core";
import type { createRouterFactory } from "@guidevane/selector";
import { type Address, isLoopback, parseAddress } from "./address.ts";
import type { SecretSource } from "./credentials.ts";
import type { Logger } from "./logger.ts";
import type { Probe } from "./probe.ts";

export interface GatewayOptions {
  /** The gateway's own fleet file: bootstrap, listeners, timers, limits and secrets. Snapshots bring the rest. */
  readonly fleet: Fleet;
  readonly cluster: string;
  /** `HOST:PORT`; port 0 = any free one. */
  readonly listen: string;
  readonly admin: string;
  /** Base URLs of the control planes; empty = none, and the gateway routes by what it has. */
  readonly controlUrls?: readonly string[];
  /** A folder where the last good snapshot is kept; null = nowhere. */
  readonly stateDir?: string | null;
  readonly selector?: "auto" | "native" | "ts";
  /**
   * Threads that serve requests, default 1. One is the caller's own; more are workers that share the address, for which
   * `clock`, `random` and `native` stand only as they are by default.
   */
  readonly threads?: number;
  /** The module that request threads run where there are several; left out = this package's. */
  readonly requestWorker?: URL;
  /** How the addon is loaded; left out = as `@guidevane/native` does. */
  readonly native?: Parameters<typeof createRouterFactory>[1];
  /** Names this process in demand reports. */
  readonly name?: string;
  /** Bearer token of the admin port, and towards the control planes. */
  readonly adminToken?: string | null;
  readonly clock?: Clock;
  readonly random?: Random;
  readonly logger?: Logger;
  readonly secrets?: SecretSource;
  readonly probe?: Probe;
}

/** Where a gateway listens. @throws GuidevaneError `bad_usage` */
export function addressesOf({ listen, admin, adminToken = null }: GatewayOptions): { own: Address; admin: Address } {
  const addresses = { own: parseAddress(listen, "--listen"), admin: parseAddress(admin, "--admin") };
  if (!isLoopback(addresses.admin.host) && adminToken === null)
    throw new GuidevaneError(
      "bad_usage",
      `--admin ${admin}: an address that is not loopback needs GUIDEVANE_ADMIN_TOKEN`,
    );
  return addresses;
}
