import { unpackSnapshot } from "@guidevane/core";
import { createRetryMemory } from "@guidevane/guard";
import {
  bootstrapSnapshot,
  clearThread,
  createRouterFactory,
  type RouterFactory,
  SlotRegistry,
} from "@guidevane/selector";
import { type CompiledSnapshot, CompiledSnapshots } from "./compiled-snapshots.ts";
import { EngineWatch, type EngineWatchOptions } from "./engine-watch.ts";
import type { GatewayOptions } from "./gateway-options.ts";
import { clearStreams, createStreamMemory } from "./guard-streams.ts";
import type { RequestSettings, ThreadNews } from "./request-thread.ts";
import { OwnThread, type RequestThreads } from "./request-threads.ts";
import { createResponseMemory } from "./response-memory.ts";
import { SnapshotReader } from "./snapshot-reader.ts";
import { SnapshotReading } from "./snapshot-reading.ts";
import { SnapshotThread } from "./snapshot-thread.ts";
import { Snapshots } from "./snapshots.ts";
import { WorkerThreads } from "./worker-threads.ts";

export interface RequestPlaneOptions
  extends Pick<GatewayOptions, "fleet" | "cluster" | "selector" | "native" | "requestWorker">,
    Pick<EngineWatchOptions, "clock" | "random" | "probe" | "logger" | "threads" | "retry" | "tlsOf"> {
  readonly settings: RequestSettings;
}

/** The threads that serve requests, the snapshot that they route by, and what is known of its engines. */
export interface RequestPlane {
  readonly kind: RouterFactory["kind"];
  readonly threads: RequestThreads;
  readonly snapshots: Snapshots;
  readonly watch: EngineWatch;
  /** Attempts under way at an engine. */
  inFlight(engine: string): number;
  /** Running answers may finish for up to `graceMs`. */
  stop(graceMs: number): Promise<void>;
}

/** Routes by a bootstrap of the fleet file at first. @throws GuidevaneError `native_unavailable` */
export async function createRequestPlane(options: RequestPlaneOptions): Promise<RequestPlane> {
  const { fleet, cluster, clock, threads: count } = options;
  const factory = createFactory(options);
  const memory = createMemory(count);
  const { registry, state } = memory;

  const watch: EngineWatch = new EngineWatch({
    ...options,
    ...memory,
    snapshot: () => snapshots.snapshot,
    onDied: (engine) => threads.engineDied(engine),
  });
  const compiled: CompiledSnapshots = new CompiledSnapshots(
    registry,
    (snapshot) => watch.retryRowsOf(snapshot),
    // In a turn of its own: whoever let go of it has looked at all engines as well.
    () => setImmediate(() => watch.states.sweep(compiled.inUse())),
  );
  const reading = new SnapshotReading(factory, state);
  const reader = new SnapshotReader(reading, new SnapshotThread({ selector: factory.kind, state }));
  const first = await compiled.compile(reader.own(bootstrapSnapshot(fleet, cluster, clock.wallMs())), "bootstrap");
  const threads = createThreads(options, factory, memory, first, {
    watch,
    compiled,
    current: () => snapshots.current,
  });

  const prepare = ({ packed }: CompiledSnapshot): Promise<void> => watch.prepare(unpackSnapshot(packed));
  const indices = Array.from({ length: count }, (_, index) => index);
  const use = ({ number, packed }: CompiledSnapshot): void => {
    compiled.handTo(number, indices);
    watch.use(unpackSnapshot(packed));
  };
  const snapshots = new Snapshots(first, {
    cluster,
    read: (text) => reader.read(text),
    compile: (read, source) => compiled.compile(read, source),
    prepare,
    onSwap(next) {
      use(next);
      return threads.use(next);
    },
  });
  await prepare(first);
  use(first);
  return {
    kind: factory.kind,
    threads,
    snapshots,
    watch,
    inFlight: (engine) => registry.inFlightAt(engine),
    async stop(graceMs) {
      await threads.stop(graceMs);
      watch.stop();
      await reader.stop();
    },
  };
}

/** Says once where routing falls back to TypeScript. @throws GuidevaneError `native_unavailable` */
function createFactory({ selector = "auto", native, logger }: RequestPlaneOptions): RouterFactory {
  const factory = createRouterFactory(selector, ...(native === undefined ? [] : [native]));
  if (factory.degraded !== undefined) logger.warn({ reason: factory.degraded }, "routing in TypeScript");
  return factory;
}

/** What the threads of a process share. */
function createMemory(threads: number) {
  const registry = new SlotRegistry({ threads });
  return {
    registry,
    state: registry.state,
    retryMemory: createRetryMemory(),
    streamMemory: createStreamMemory(threads),
    responseMemory: createResponseMemory(),
  };
}

/** What is told of threads, and asked for a new one. */
interface ThreadWatch {
  readonly watch: EngineWatch;
  readonly compiled: CompiledSnapshots;
  /** The snapshot in use. */
  readonly current: () => CompiledSnapshot;
}

/** One is the caller's own, more are workers. */
function createThreads(
  { threads: count, clock, random, logger, settings, requestWorker }: RequestPlaneOptions,
  factory: RouterFactory,
  { state, retryMemory, streamMemory, responseMemory }: ReturnType<typeof createMemory>,
  first: CompiledSnapshot,
  { watch, compiled, current }: ThreadWatch,
): RequestThreads {
  const start = { state, retryMemory, streamMemory, responseMemory, settings, first };
  const newsOf = (thread: number): ThreadNews => ({
    ...watch.newsOf(thread),
    idle: (number) => compiled.letGo(number, thread),
    failed: (requestId, error, stack) => logger.error({ requestId, error, stack }, "request failed"),
  });
  if (count === 1) return new OwnThread({ ...start, thread: 0, clock, random, factory, news: newsOf(0) });
  return new WorkerThreads({
    ...start,
    selector: factory.kind,
    worker: requestWorker,
    count,
    clock,
    logger,
    newsOf,
    onDeath(thread) {
      compiled.letGoOfAll(thread);
      watch.threadDied(thread);
      clearStreams(streamMemory, thread);
      clearThread(state, thread);
    },
    onReplaced(thread) {
      compiled.handToNew(current().number, thread);
      return current();
    },
  });
}
