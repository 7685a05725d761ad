import type { Server } from "node:http";
import { type Clock, type Fleet, type Random, unpackSnapshot } from "@guidevane/core";
import { RetryBudget } from "@guidevane/guard";
import type { RouterFactory, SharedState } from "@guidevane/selector";
import { type Address, listen } from "./address.ts";
import type { AttemptVerdict } from "./attempt-result.ts";
import { type ClientKey, ClientKeys } from "./client-keys.ts";
import type { CompiledSnapshot } from "./compiled-snapshots.ts";
import type { EngineCredentials } from "./credentials.ts";
import type { Decision } from "./decision.ts";
import { Decisions } from "./decisions.ts";
import { Arrivals, type ClassCounts } from "./demand.ts";
import { Engines } from "./engines.ts";
import { GuardAdmission } from "./guard-admission.ts";
import type { AttemptNews } from "./guard-penalties.ts";
import { SharedStreams } from "./guard-streams.ts";
import { ENGINES_A_TURN, inTurns, nextTurn } from "./loop-turns.ts";
import { createMetrics, type GatewayMetrics, OTHER } from "./metrics.ts";
import { PlainEngineClient } from "./plain-engine-client.ts";
import { ResponseMemory } from "./response-memory.ts";
import { createRoute } from "./route.ts";
import { Routing } from "./routing.ts";
import { createFront, type FrontLimits } from "./server.ts";
import { SharedTimer } from "./shared-timer.ts";
import { UndiciEngineClient } from "./undici-client.ts";

/** What requests are served by beside the snapshot, as plain data; another one may take its place at any time. */
export interface RequestSettings {
  readonly gateway: Fleet["gateway"];
  /** By engine; others get none. */
  readonly credentials: ReadonlyMap<string, EngineCredentials>;
  /** What clients must bring; null = nothing. */
  readonly clientKeys: readonly ClientKey[] | null;
}

/** What a request thread tells the process. Plain data: the process may be on another thread. */
export interface ThreadNews {
  /** @param attempt counted by this thread; it names the attempt in what is told of it later */
  attemptBegan(attempt: number, begun: AttemptNews): void;
  /** The first content of a stream has come, so long after the attempt began. */
  firstToken(attempt: number, ttftMs: number): void;
  attemptEnded(attempt: number, engine: string, verdict: AttemptVerdict): void;
  /** Answers of an engine that are under way made progress. */
  heard(engine: string): void;
  /** No request of this thread is routed by that snapshot any more. */
  idle(compiled: number): void;
  /** A request failed on an error that nobody foresaw. */
  failed(requestId: string, error: string, stack: string | undefined): void;
}

export interface RequestThreadOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly factory: RouterFactory;
  /** Shared with the process's other threads. */
  readonly state: SharedState;
  /** Shared as well: the retry budgets. */
  readonly retryMemory: SharedArrayBuffer;
  /** And the counts of streams, in which this thread has its own part. */
  readonly streamMemory: SharedArrayBuffer;
  readonly thread: number;
  /** Since the control plane's last word; left out = it was heard just now. */
  readonly controlSilentMs?: number;
  /** And what is remembered of the Responses API. */
  readonly responseMemory: SharedArrayBuffer;
  readonly settings: RequestSettings;
  readonly first: CompiledSnapshot;
  readonly news: ThreadNews;
}

/** Decisions that a process remembers; each of its threads its part. */
const DECISIONS = 100_000;

/** How often answers under way are looked at: a late probe is outweighed by progress within a few seconds. */
const LOOK_EVERY_MS = 1000;

/**
 * The request path of one thread: a listener, what requests are routed by, connections to engines, and counts. It never
 * waits for the rest of the process.
 */
export class RequestThread {
  readonly metrics: GatewayMetrics = createMetrics();
  readonly #options: RequestThreadOptions;
  readonly #arrivals = new Arrivals();
  readonly #decisions: Decisions;
  readonly #engines: Engines;
  readonly #admission: GuardAdmission;
  /** Live ones of the cluster. */
  #gateways: number;
  #gatewaysTold = 0;
  #used: Promise<void> = Promise.resolve();
  readonly #inUse = new Set<Routing>();
  readonly #front: Server;
  #settings: RequestSettings;
  #clientKeys: ClientKeys | null;
  #routing: Routing;
  #controlHeardMs: number;
  #stopped: Promise<void> | null = null;
  #stopLooking = (): void => {};

  constructor(options: RequestThreadOptions) {
    const { random, settings, news } = options;
    const clock = new SharedTimer(options.clock);
    this.#options = options;
    this.#settings = settings;
    this.#clientKeys = keysOf(settings);
    this.#controlHeardMs = clock.nowMs() - (options.controlSilentMs ?? 0);
    const { connectMs } = settings.gateway.timers;
    this.#engines = new Engines({
      credentials: settings.credentials,
      createClient: (origin, tls) =>
        origin.startsWith("https:")
          ? new UndiciEngineClient({ origin, connectMs, clock, tls })
          : new PlainEngineClient({ origin, connectMs, clock }),
    });
    this.#routing = this.#load(options.first);
    const gateway = (): Fleet["gateway"] => this.#settings.gateway;
    const rowOf = (name: string): number => this.#routing.retryRows(name)?.cell ?? Number.POSITIVE_INFINITY;
    this.#admission = new GuardAdmission({
      clock,
      streams: new SharedStreams(options.streamMemory, options.thread, rowOf),
      limits: () => gateway().limits,
    });
    const { snapshot } = this.#routing;
    this.#admission.use(snapshot);
    this.#gateways = snapshot.gateways;
    const { cluster } = snapshot;
    this.#decisions = new Decisions({ cluster, clock, entries: Math.ceil(DECISIONS / options.state.threads) });
    this.metrics.decisionBytes.set(this.#decisions.bytes);
    const route = createRoute({
      clock,
      random,
      get settings() {
        return gateway();
      },
      retries: new RetryBudget(options.retryMemory),
      routing: () => this.#routing,
      placement: () => gateway().placement === "auto" && this.#gateways === 1,
      clientKeys: () => this.#clientKeys,
      sinceControlMs: () => clock.nowMs() - this.#controlHeardMs,
      engines: this.#engines,
      admission: this.#admission,
      news,
      demand: this.#arrivals,
      metrics: this.metrics,
      decisions: this.#decisions,
      responses: new ResponseMemory(options.responseMemory),
      onError: (error, requestId) =>
        news.failed(requestId, String(error), error instanceof Error ? error.stack : undefined),
    });
    this.#lookAtAnswers();
    this.#front = createFront(
      frontLimits(settings.gateway, options.state.threads),
      (request, response) => {
        if (this.#stopped !== null) response.shouldKeepAlive = false;
        route(request, response);
      },
      () => this.metrics.requests.inc(OTHER, "rejected"),
      () => {
        // A connection that was promised to be kept alive is idle only after its answer.
        if (this.#stopped !== null) setImmediate(() => this.#front.closeIdleConnections());
      },
    );
  }

  /**
   * @param shared other threads of the process listen there too, and the kernel spreads connections over them
   * @returns the base URL that leads here. Rejects with what listening fails on
   */
  listen(address: Address, shared = false): Promise<string> {
    return listen(this.#front, address, shared);
  }

  /** Requests are routed by it once it is loaded, which takes a few turns of the event loop for a large one. */
  use(compiled: CompiledSnapshot): Promise<void> {
    const used = this.#used.then(() => this.#use(compiled));
    this.#used = used.catch(() => {});
    return used;
  }

  /** From the next request on. */
  configure(settings: RequestSettings): void {
    this.#settings = settings;
    this.#clientKeys = keysOf(settings);
    this.#engines.setCredentials(settings.credentials);
    this.#admission.reconfigure();
  }

  /** So many gateways of the cluster live, this one included. */
  setGateways(count: number): void {
    this.#gateways = count;
    this.#gatewaysTold += 1;
    this.#admission.setGateways(count);
  }

  /** The control plane was heard, just now. */
  controlHeard(): void {
    this.#controlHeardMs = this.#options.clock.nowMs();
  }

  /** An engine's port refuses: what waits for it need not wait on. */
  engineDied(engine: string): void {
    this.#engines.died(engine);
  }

  /** Attempts under way at an engine. */
  inFlight(engine: string): number {
    return this.#engines.inFlight(engine);
  }

  /** What arrived since the last call. */
  takeArrivals(): ReadonlyMap<string, ClassCounts> {
    return this.#arrivals.take();
  }

  /** What became of the last request with that id, and why; null where it is not known. */
  findDecision(id: string): Decision | null {
    return this.#decisions.find(id);
  }

  /** Takes no new request, lets running answers finish for up to `graceMs`, then closes everything. */
  stop(graceMs: number): Promise<void> {
    this.#stopped ??= this.#stop(graceMs);
    return this.#stopped;
  }

  async #stop(graceMs: number): Promise<void> {
    const closed = closeServer(this.#front);
    this.#front.closeIdleConnections();
    const cut = this.#options.clock.after(graceMs, () => this.#front.closeAllConnections());
    if (graceMs <= 0) this.#front.closeAllConnections();
    await closed;
    cut();
    this.#stopLooking();
    this.#engines.close();
  }

  #lookAtAnswers(): void {
    const { clock, news } = this.#options;
    for (const engine of this.#engines.progressed()) news.heard(engine);
    this.#stopLooking = clock.after(LOOK_EVERY_MS, () => this.#lookAtAnswers());
  }

  async #use(compiled: CompiledSnapshot): Promise<void> {
    const told = this.#gatewaysTold;
    const snapshot = unpackSnapshot(compiled.packed);
    // Read now, some in each turn, or the first request that says what is ruled out would have to read them all.
    const engines = Object.values(snapshot.engines);
    await inTurns(engines, ENGINES_A_TURN, (engine) => engine.url);
    const next = this.#load(compiled);
    if (engines.length > ENGINES_A_TURN) await nextTurn();
    const before = this.#routing;
    this.#routing = next;
    this.#admission.use(snapshot);
    // What was told meanwhile is newer than the snapshot.
    if (told === this.#gatewaysTold) this.#gateways = snapshot.gateways;
    else this.#admission.setGateways(this.#gateways);
    // Then what only that one had is looked for among all engines.
    if (engines.length > ENGINES_A_TURN) await nextTurn();
    before.retire();
  }

  #load(compiled: CompiledSnapshot): Routing {
    const { state, factory, news, thread } = this.#options;
    const onIdle = (idle: Routing): void => {
      this.#inUse.delete(idle);
      this.#engines.sweep([...this.#inUse].map(({ snapshot }) => snapshot));
      news.idle(idle.number);
    };
    const routing = new Routing(compiled, state, factory, onIdle, thread);
    this.#inUse.add(routing);
    this.#engines.adopt(routing.snapshot);
    return routing;
  }
}

/** One thread's part: the kernel spreads connections evenly. */
function frontLimits({ limits, timers }: Fleet["gateway"], threads: number): FrontLimits {
  const { headBytes, headMs, connections } = limits;
  return { headBytes, headMs, connections: Math.ceil(connections / threads), idleMs: timers.clientIdleMs };
}

function keysOf({ clientKeys }: RequestSettings): ClientKeys | null {
  return clientKeys === null ? null : new ClientKeys(clientKeys);
}

/** Resolves when nobody is connected to it any more. */
export function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
  });
}
