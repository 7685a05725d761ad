import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { type Clock, type Fleet, GuidevaneError, type Random, type Store, systemClock } from "@guidevane/core";
import { DASHBOARD_CSP, DASHBOARD_HTML } from "@guidevane/dashboard";
import { createAdminServer } from "./admin.ts";
import { createGuard } from "./admin-guard.ts";
import { type Analyst, createAnalyst } from "./analyst.ts";
import { Control } from "./control.ts";
import { createProber } from "./engine-probe.ts";
import type { ControlLogger } from "./log.ts";
import { createSolverPool, type Solver } from "./solver-pool.ts";

/** Longest wait for an engine's answer to a probe or a scrape. */
const PROBE_MS = 2000;

export interface ControlOptions {
  readonly fleet: Fleet;
  readonly store: Store;
  readonly adminHost: string;
  /** 0 = any free one. */
  readonly adminPort: number;
  /** Bearer token of the admin API; needed where the address is not loopback. */
  readonly adminToken?: string | undefined;
  readonly logger: ControlLogger;
  readonly clock?: Clock;
  readonly random?: Random;
  /** Where solves and verifications run; by default a worker thread. Closed by `stop`. */
  readonly solver?: Solver;
  /** Where questions about plans are answered; by default another worker thread. Closed by `stop`. */
  readonly analyst?: Analyst;
  /** Solve and explain, publish nothing. Default false. */
  readonly advise?: boolean;
}

export interface RunningControl {
  /** Base address of the admin API, without a slash at its end. */
  readonly adminUrl: string;
  /** Plans by another fleet file from the next tick on. Every key takes effect without a restart. */
  reload(fleet: Fleet): Promise<void>;
  /** Ends everything that was started; resolves when all of it has ended. */
  stop(): Promise<void>;
}

/**
 * Starts a control plane: it listens first, so that gateways can wait for the first snapshot, then reads the store, asks
 * the engines and ticks.
 *
 * @throws GuidevaneError `bad_usage` when the admin address is taken or open without a token; `store_unreadable`
 */
export async function startControl(options: ControlOptions): Promise<RunningControl> {
  const { adminHost, adminPort } = options;
  const guard = createGuard(adminHost, options.adminToken ?? null);
  const clock = options.clock ?? systemClock;
  const control = new Control({
    fleet: options.fleet,
    store: options.store,
    solver: options.solver ?? createSolverPool(clock),
    analyst: options.analyst ?? createAnalyst(clock),
    prober: createProber(PROBE_MS),
    clock,
    random: options.random ?? Math.random,
    logger: options.logger,
    advise: options.advise ?? false,
  });
  const server = createAdminServer(control, guard, { html: DASHBOARD_HTML, contentSecurityPolicy: DASHBOARD_CSP });
  const stop = async () => {
    const closed = server.listening ? once(server, "close") : Promise.resolve();
    server.close();
    await control.stop();
    server.closeAllConnections();
    await closed;
  };
  try {
    server.listen(adminPort, adminHost);
    await once(server, "listening");
  } catch (error) {
    await stop();
    const { message } = error as Error;
    throw new GuidevaneError("bad_usage", `can't listen on ${adminHost}:${adminPort}: ${message}`, { cause: error });
  }
  try {
    await control.start();
  } catch (error) {
    await stop();
    throw error;
  }
  const { address, port, family } = server.address() as AddressInfo;
  const adminUrl = `http://${family === "IPv6" ? `[${address}]` : address}:${port}`;
  options.logger.info({ adminUrl }, "the control plane listens");
  return { adminUrl, reload: (fleet) => control.reload(fleet), stop };
}
