import type { Server } from "node:http";
import { hostname } from "node:os";
import { type Clock, type FeedEvent, type Fleet, systemClock } from "@guidevane/core";
import { PENALTY_TICK_MS } from "@guidevane/guard";
import { pino } from "pino";
import { listen } from "./address.ts";
import { createAdmin } from "./admin.ts";
import { loadClientKeys } from "./client-keys.ts";
import { ControlLink } from "./control-link.ts";
import { loadCredentials, processSecrets, type SecretSource } from "./credentials.ts";
import { DemandWindow, writeReport } from "./demand.ts";
import { addressesOf, type GatewayOptions } from "./gateway-options.ts";
import type { Logger } from "./logger.ts";
import { partsInTurns } from "./loop-turns.ts";
import { createMetrics } from "./metrics.ts";
import { probeOverHttp } from "./probe.ts";
import { checkCluster, restartKeys } from "./reload.ts";
import { createRequestPlane, type RequestPlane } from "./request-plane.ts";
import { closeServer, type RequestSettings } from "./request-thread.ts";
import { SnapshotFile } from "./snapshot-file.ts";
import { SnapshotIntake } from "./snapshot-intake.ts";
import { textOf } from "./snapshot-text.ts";
import type { Offered } from "./snapshots.ts";

export interface Gateway {
  readonly url: string;
  readonly adminUrl: string;
  /** Offers a snapshot's JSON as if the control plane had sent it; for tests and for a process without one. */
  offer(json: string): Promise<Offered>;
  /**
   * Takes another fleet file: credentials and settings of requests from the next one on. Snapshots bring the rest.
   *
   * @returns the changed keys that only a restart makes true
   * @throws GuidevaneError `bad_fleet` when it lacks the gateway's cluster, or its client keys can't be read; the present
   *   one stays
   */
  reload(fleet: Fleet): readonly string[];
  /**
   * Is not ready any more at once, and serves on for `unreadyMs`, so that balancers see it before connections are refused.
   * Then takes no new request, lets running answers finish for up to `graceMs`, and closes everything.
   */
  stop(graceMs?: number, unreadyMs?: number): Promise<void>;
}

const REPORT_EVERY_MS = 1000;
/** How often a returning engine's factor is written again: a ramp of 10 s in steps of 2.5 %. */
const REFRESH_EVERY_MS = PENALTY_TICK_MS;
const GRACE_MS = 10_000;

/**
 * Starts one gateway of a cluster: it listens, and routes by the best snapshot it has, which is at first the one on disk
 * or else a bootstrap of its own.
 *
 * @throws GuidevaneError `bad_usage` (address, token), `bad_fleet` (no such cluster, no client keys where it names some),
 *   `native_unavailable`; and what listening fails on
 */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { cluster, stateDir = null, adminToken = null, threads: count = 1 } = options;
  const { clock = systemClock, random = Math.random, secrets = processSecrets, probe = probeOverHttp } = options;
  const logger: Logger = options.logger ?? pino({ level: process.env.LOG_LEVEL ?? "info" });
  const addresses = addressesOf(options);
  let fleet = options.fleet;
  let settings = loadSettings(fleet, secrets, logger);
  const plane = await createRequestPlane({
    ...options,
    ...{ clock, random, probe, logger, settings, threads: count },
    retry: () => fleet.gateway.retry,
    tlsOf: (engine) => settings.credentials.get(engine)?.tls ?? null,
  });
  const { threads, snapshots, watch } = plane;
  const metrics = createMetrics();
  metrics.native.set(plane.kind === "native" ? 1 : 0);
  const file = stateDir === null ? null : new SnapshotFile(stateDir, cluster);
  const intake = new SnapshotIntake(snapshots, file, metrics, logger);
  await intake.startFromDisk();

  let lastWordMs = clock.nowMs();
  const link = createLink({ ...options, clock, random, logger }, plane, intake, () => {
    lastWordMs = clock.nowMs();
    threads.controlHeard();
  });
  const demand = new DemandWindow(options.name ?? `${hostname()}-${process.pid}`, cluster, clock.nowMs());

  let notReady: string | null = "not listening yet";
  const admin = createAdmin({
    states: watch.states,
    penaltyOf: (engine) => watch.penaltyOf(engine),
    inFlight: (engine) => plane.inFlight(engine),
    metrics,
    findDecision: (id) => threads.findDecision(id),
    threadMetrics: () => threads.metrics(),
    snapshot: () => snapshots.snapshot,
    sinceControlMs: () => clock.nowMs() - lastWordMs,
    nowMs: () => clock.nowMs(),
    notReady: () => notReady ?? (threads.listening ? null : "no request thread listens"),
    token: adminToken,
  });

  const { url, adminUrl } = await listenAt(addresses, admin, plane);
  notReady = null;
  link.start();
  /** Resolves when the report is on its way. */
  const report = async (): Promise<void> => {
    for (const arrived of threads.takeArrivals()) demand.add(arrived);
    const head = demand.take(clock.nowMs(), notReady !== null);
    const text = await partsInTurns(writeReport(head, watch.takeDemand()));
    // It never rejects: it tells of trouble itself.
    void link.report(text);
  };
  const stopTimers = [
    every(clock, REPORT_EVERY_MS, () => void report()),
    every(clock, REFRESH_EVERY_MS, () => {
      watch.tick();
      metrics.retryBudgetTokens.set(watch.leastRetryTokens());
    }),
  ];
  logger.info(
    { listen: options.listen, url, adminUrl, cluster, router: plane.kind, snapshot: snapshots.tag ?? "bootstrap" },
    "gateway listens",
  );

  let stopped: Promise<void> | null = null;
  const stop = async (graceMs: number, unreadyMs: number): Promise<void> => {
    notReady = "stopping";
    // The others of the cluster have its part of the limits from now on.
    await report();
    if (unreadyMs > 0) await new Promise<void>((resolve) => clock.after(unreadyMs, resolve));
    await plane.stop(graceMs);
    for (const stopTimer of stopTimers) stopTimer();
    await link.stop();
    admin.closeAllConnections();
    await closeServer(admin);
  };
  return {
    url,
    adminUrl,
    offer: (json) => intake.offer(textOf(json), "control"),
    reload(next) {
      checkCluster(next, cluster);
      const keys = restartKeys(fleet, next, snapshots.tag === null);
      settings = loadSettings(next, secrets, logger);
      threads.configure(settings);
      fleet = next;
      return keys;
    },
    stop(graceMs = GRACE_MS, unreadyMs = 0) {
      stopped ??= stop(graceMs, unreadyMs);
      return stopped;
    },
  };
}

/** The link to the control planes; what they say goes to those whom it is for. @param onWord told of every answer */
function createLink(
  { controlUrls = [], cluster, adminToken = null, clock, random, logger }: GatewayOptions & LinkParts,
  { snapshots, watch, threads }: RequestPlane,
  intake: SnapshotIntake,
  onWord: () => void,
): ControlLink {
  return new ControlLink({
    ...{ urls: controlUrls, cluster, token: adminToken, clock, random, onWord },
    tag: () => snapshots.tag,
    onSnapshot: (text) => intake.offer(text, "control"),
    onFeed(event: FeedEvent) {
      watch.hear(event);
      if (event.event === "gateways") threads.setGateways(event.data.gateways);
    },
    onTrouble(what, url, why) {
      if (why === null) logger.info({ what, url }, "control plane answers again");
      else logger.warn({ what, url, why }, "control plane does not answer");
    },
  });
}

type LinkParts = Required<Pick<GatewayOptions, "clock" | "random" | "logger">>;

/** Listens for clients and on the admin port; where one of them can't be had, nothing is left running. */
async function listenAt(
  addresses: ReturnType<typeof addressesOf>,
  admin: Server,
  plane: RequestPlane,
): Promise<{ readonly url: string; readonly adminUrl: string }> {
  try {
    const adminUrl = await listen(admin, addresses.admin);
    return { url: await plane.threads.listen(addresses.own), adminUrl };
  } catch (error) {
    await plane.stop(0);
    await closeServer(admin);
    throw error;
  }
}

/** @throws GuidevaneError `bad_fleet` when the client keys can't be read */
function loadSettings(fleet: Fleet, secrets: SecretSource, logger: Logger): RequestSettings {
  return {
    gateway: fleet.gateway,
    clientKeys: loadClientKeys(fleet.gateway.clientKeys, secrets),
    credentials: loadCredentials(fleet, secrets, (engine, why) =>
      logger.warn({ engine, why }, "no credentials for this engine"),
    ),
  };
}

function every(clock: Clock, ms: number, task: () => void): () => void {
  let stop = clock.after(ms, turn);
  function turn(): void {
    stop = clock.after(ms, turn);
    task();
  }
  return () => stop();
}
