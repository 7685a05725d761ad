import { mkdir } from "node:fs/promises";
import { hostname } from "node:os";
import { type Clock, type FeedEvent, type Fleet, GuidevaneError, type Random, systemClock } from "@guidevane/core";
import { createRetryMemory, PENALTY_TICK_MS, RetryKeeper } from "@guidevane/guard";
import { bootstrapSnapshot, clearThread, createRouterFactory, SlotRegistry, setEngine } from "@guidevane/selector";
import { pino } from "pino";
import { isLoopback, listen, parseAddress } from "./address.ts";
import { createAdmin } from "./admin.ts";
import { loadClientKeys } from "./client-keys.ts";
import { type CompiledSnapshot, CompiledSnapshots } from "./compiled-snapshots.ts";
import { ControlLink } from "./control-link.ts";
import { loadCredentials, processSecrets, type SecretSource } from "./credentials.ts";
import { DemandWindow } from "./demand.ts";
import { EngineStates } from "./engine-states.ts";
import { GuardPenalties, tellEvidence } from "./guard-penalties.ts";
import { clearStreams, createStreamMemory } from "./guard-streams.ts";
import type { Logger } from "./logger.ts";
import { createMetrics } from "./metrics.ts";
import { type Probe, probeOverHttp } from "./probe.ts";
import { Prober } from "./prober.ts";
import { checkCluster, restartKeys } from "./reload.ts";
import { closeServer, type RequestSettings, type ThreadNews } from "./request-thread.ts";
import { OwnThread, type RequestThreads } from "./request-threads.ts";
import { createResponseMemory } from "./response-memory.ts";
import { SnapshotFile } from "./snapshot-file.ts";
import { SnapshotIntake } from "./snapshot-intake.ts";
import { type Offered, Snapshots } from "./snapshots.ts";
import { stateWord } from "./state-word.ts";
import { WorkerThreads } from "./worker-threads.ts";

export interface GatewayOptions {
  /** The gateway's own fleet file: bootstrap, listeners, timers, limits and secrets. Snapshots bring the rest. */
  readonly fleet: Fleet;
  readonly cluster: string;
  /** `HOST:PORT`; port 0 = any free one. */
  readonly listen: string;
  readonly admin: string;
  /** Base URLs of the control planes; empty = none, and the gateway routes by what it has. */
  readonly controlUrls?: readonly string[];
  /** Where the last good snapshot is kept; null = nowhere. */
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

export interface Gateway {
  readonly url: string;
  readonly adminUrl: string;
  /** Offers a snapshot's JSON as if the control plane had sent it; for tests and for a process without one. */
  offer(json: string): Offered;
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
 * @throws GuidevaneError `bad_usage` (address, token), `bad_fleet` (no such cluster, no client keys where it names some), `native_unavailable`; and what
 *   listening fails on
 */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { fleet, cluster, controlUrls = [], stateDir = null, adminToken = null } = options;
  const { clock = systemClock, random = Math.random, secrets = processSecrets, probe = probeOverHttp } = options;
  const log: Logger = options.logger ?? pino({ level: process.env.LOG_LEVEL ?? "info" });
  const address = parseAddress(options.listen, "--listen");
  const adminAddress = parseAddress(options.admin, "--admin");
  if (!isLoopback(adminAddress.host) && adminToken === null)
    throw new GuidevaneError(
      "bad_usage",
      `--admin ${options.admin}: an address that is not loopback needs GUIDEVANE_ADMIN_TOKEN`,
    );

  // Before anything runs that would have to be stopped again.
  if (stateDir !== null) await mkdir(stateDir, { recursive: true });

  const factory = createRouterFactory(
    options.selector ?? "auto",
    ...(options.native === undefined ? [] : [options.native]),
  );
  if (factory.degraded !== undefined) log.warn({ reason: factory.degraded }, "routing in TypeScript");
  let present = fleet;
  const settingsOf = (of: Fleet): RequestSettings => ({
    gateway: of.gateway,
    clientKeys: loadClientKeys(of.gateway.clientKeys, secrets),
    credentials: loadCredentials(of, secrets, (engine, why) =>
      log.warn({ engine, why }, "no credentials for this engine"),
    ),
  });
  let settings = settingsOf(fleet);
  const count = options.threads ?? 1;
  const registry = new SlotRegistry({ threads: count });
  const retryMemory = createRetryMemory();
  const retries = new RetryKeeper(retryMemory, () => present.gateway.retry, clock.nowMs());
  const states = new EngineStates({
    clock,
    onDied: (engine) => threads.engineDied(engine),
    penaltyOf: (engine) => penalties.factor(engine),
    retryAfterCapMs: () => present.gateway.retry.retryAfterCapMs,
    onFacts: (engine, facts, coolingMs) => {
      const slot = registry.slotOf(engine);
      if (slot !== null) setEngine(registry.state, slot, stateWord(facts, coolingMs, penalties.factor(engine)));
    },
    onHealth: (engine, { health, reason }, before) => {
      log.info({ engine, health, before, reason }, "engine health");
      if (health === "dead") prober.hurry(engine);
    },
  });
  const prober = new Prober(states, probe, (engine) => settings.credentials.get(engine)?.tls ?? null, clock, random);

  const penalties = new GuardPenalties({
    nowMs: () => clock.nowMs(),
    threads: count,
    snapshot: () => snapshots.current.snapshot,
    takes: (engine) => states.takes(engine),
    onVerdict: (engine) => states.reread(engine),
    onEvidence: (engine, evidence) => tellEvidence(log, engine, evidence),
  });
  const threadIndices = Array.from({ length: count }, (_, index) => index);
  const compiled = new CompiledSnapshots(
    registry,
    (snapshot) => retries.rowsOf(snapshot),
    () => states.sweep(compiled.inUse()),
  );
  const bootstrap = compiled.compile(bootstrapSnapshot(fleet, cluster, clock.wallMs()), "bootstrap", threadIndices);
  const newsOf = (thread: number): ThreadNews => ({
    attemptBegan: (attempt, begun) => penalties.began(thread, attempt, begun),
    firstToken: (attempt, ttftMs) => penalties.firstToken(thread, attempt, ttftMs),
    attemptEnded: (attempt, engine, report) => {
      penalties.ended(thread, attempt, report);
      states.ended(engine, report);
    },
    heard: (engine) => states.heard(engine),
    idle: (number) => compiled.letGo(number, thread),
    failed: (requestId, error, stack) => log.error({ requestId, error, stack }, "request failed"),
  });
  const streamMemory = createStreamMemory(count);
  const responseMemory = createResponseMemory();
  const start = {
    state: registry.state,
    retryMemory,
    streamMemory,
    responseMemory,
    settings,
    first: bootstrap,
  };
  const threads: RequestThreads =
    count === 1
      ? new OwnThread({ ...start, thread: 0, clock, random, factory, news: newsOf(0) })
      : new WorkerThreads({
          ...start,
          selector: factory.kind,
          count,
          worker: options.requestWorker,
          clock,
          logger: log,
          newsOf,
          onDeath: (thread) => {
            compiled.letGoOfAll(thread);
            penalties.threadDied(thread);
            clearStreams(streamMemory, thread);
            clearThread(registry.state, thread);
          },
          onReplaced(thread) {
            compiled.hold(snapshots.current.number, thread);
            return snapshots.current;
          },
        });
  const metrics = createMetrics();
  metrics.native.set(factory.kind === "native" ? 1 : 0);
  const adopt = ({ snapshot }: CompiledSnapshot): void => {
    states.adopt(snapshot);
    prober.adopt();
    retries.adopt(snapshot);
    metrics.snapshotVersion.set(snapshot.version);
  };
  adopt(bootstrap);
  const snapshots = new Snapshots(bootstrap, {
    cluster,
    compile: (snapshot, source) => compiled.compile(snapshot, source, threadIndices),
    onSwap: (next) => {
      threads.use(next);
      adopt(next);
    },
  });

  const file = stateDir === null ? null : new SnapshotFile(stateDir, cluster);
  const intake = new SnapshotIntake(snapshots, file, metrics, log);
  await intake.startFromDisk();

  const demand = new DemandWindow(options.name ?? `${hostname()}-${process.pid}`, cluster, clock.nowMs());
  const startedMs = clock.nowMs();
  let lastWordMs: number | null = null;
  const sinceControlMs = (): number => clock.nowMs() - (lastWordMs ?? startedMs);
  const link = new ControlLink({
    urls: controlUrls,
    cluster,
    token: adminToken,
    clock,
    random,
    tag: () => snapshots.tag,
    onSnapshot: (json, checksum) => intake.offer(json, "control", checksum),
    onFeed: (event) => hear(event, states, threads),
    onWord: () => {
      lastWordMs = clock.nowMs();
      threads.controlHeard();
    },
    onTrouble: (what, url, why) => {
      if (why === null) log.info({ what, url }, "control plane answers again");
      else log.warn({ what, url, why }, "control plane does not answer");
    },
  });

  let listening = false;
  let stopping = false;
  const admin = createAdmin({
    states,
    penaltyOf: (engine) => penalties.verdict(engine),
    inFlight: (engine) => registry.inFlightAt(engine),
    metrics,
    findDecision: (id) => threads.findDecision(id),
    threadMetrics: () => threads.metrics(),
    snapshot: () => snapshots.current.snapshot,
    sinceControlMs,
    nowMs: () => clock.nowMs(),
    notReady: () => (stopping ? "stopping" : listening ? null : "not listening yet"),
    token: adminToken,
  });

  let adminUrl: string;
  let url: string;
  try {
    adminUrl = await listen(admin, adminAddress);
    url = await threads.listen(address);
  } catch (error) {
    prober.stop();
    await threads.stop(0);
    await closeServer(admin);
    throw error;
  }
  listening = true;
  link.start();
  const stopTimers = [
    every(clock, REPORT_EVERY_MS, () => {
      // `report` never rejects: it tells of trouble itself.
      for (const arrived of threads.takeArrivals()) demand.add(arrived);
      const engines = states.takeDemand().map((each) => ({ ...each, ...penalties.reported(each.id) }));
      void link.report(demand.take(clock.nowMs(), engines));
    }),
    every(clock, REFRESH_EVERY_MS, () => {
      penalties.tick();
      states.refresh();
      retries.refresh(clock.nowMs(), (engine) => states.factorOf(engine));
      metrics.retryBudgetTokens.set(Math.min(...retries.tokens().values()));
    }),
  ];
  log.info({ url, adminUrl, cluster, router: factory.kind, snapshot: snapshots.tag ?? "bootstrap" }, "gateway listens");

  let stopped: Promise<void> | null = null;
  const stop = async (graceMs: number, unreadyMs: number): Promise<void> => {
    stopping = true;
    if (unreadyMs > 0) await new Promise<void>((resolve) => clock.after(unreadyMs, resolve));
    await threads.stop(graceMs);
    for (const stopTimer of stopTimers) stopTimer();
    prober.stop();
    await link.stop();
    admin.closeAllConnections();
    await closeServer(admin);
  };
  return {
    url,
    adminUrl,
    offer: (json) => intake.offer(json, "control", null),
    reload(next) {
      checkCluster(next, cluster);
      const keys = restartKeys(present, next, snapshots.tag === null);
      settings = settingsOf(next);
      threads.configure(settings);
      present = next;
      return keys;
    },
    stop: (graceMs = GRACE_MS, unreadyMs = 0) => {
      stopped ??= stop(graceMs, unreadyMs);
      return stopped;
    },
  };
}

function hear(event: FeedEvent, states: EngineStates, threads: RequestThreads): void {
  if (event.event === "engines") states.setAdmin(event.data.engines);
  else if (event.event === "signals") states.setSignals(event.data.engines);
  else if (event.event === "gateways") threads.setGateways(event.data.gateways);
}

function every(clock: Clock, ms: number, task: () => void): () => void {
  let stop = clock.after(ms, turn);
  function turn(): void {
    stop = clock.after(ms, turn);
    task();
  }
  return () => stop();
}
