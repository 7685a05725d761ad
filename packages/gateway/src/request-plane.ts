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
import type { WorkerStart } from "./thread-messages.ts";
import { WorkerThreads, type WorkerThreadsOptions } from "./worker-threads.ts";

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
  const { fleet, cluster, clock, logger, settings, threads: count } = options;
  const factory = createRouterFactory(
    options.selector ?? "auto",
    ...(options.native === undefined ? [] : [options.native]),
  );
  if (factory.degraded !== undefined) logger.warn({ reason: factory.degraded }, "routing in TypeScript");
  const indices = Array.from({ length: count }, (_, index) => index);
  const registry = new SlotRegistry({ threads: count });
  const { state } = registry;
  const retryMemory = createRetryMemory();
  const streamMemory = createStreamMemory(count);
  const responseMemory = createResponseMemory();

  const watch: EngineWatch = new EngineWatch({
    ...options,
    registry,
    retryMemory,
    snapshot: () => snapshots.snapshot,
    onDied: (engine) => threads.engineDied(engine),
  });
  const compiled: CompiledSnapshots = new CompiledSnapshots(
    registry,
    (snapshot) => watch.retryRowsOf(snapshot),
    () => watch.states.sweep(compiled.inUse()),
  );
  const reading = new SnapshotReading(factory, state);
  const reader = new SnapshotReader(reading, new SnapshotThread({ selector: factory.kind, state }));
  const first = await compiled.compile(reader.own(bootstrapSnapshot(fleet, cluster, clock.wallMs())), "bootstrap");

  const newsOf = (thread: number): ThreadNews => ({
    ...watch.newsOf(thread),
    idle: (number) => compiled.letGo(number, thread),
    failed: (requestId, error, stack) => logger.error({ requestId, error, stack }, "request failed"),
  });
  const threads = createThreads(options, factory, newsOf, {
    start: { state, retryMemory, streamMemory, responseMemory, settings, first },
    onDeath(thread) {
      compiled.letGoOfAll(thread);
      watch.threadDied(thread);
      clearStreams(streamMemory, thread);
      clearThread(state, thread);
    },
    onReplaced(thread) {
      compiled.hold(snapshots.current.number, thread);
      return snapshots.current;
    },
  });

  const prepare = ({ packed }: CompiledSnapshot): Promise<void> => watch.prepare(unpackSnapshot(packed));
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

/** One is the caller's own, more are workers; `start`, and what is to be done when a worker dies, is of all of them. */
function createThreads(
  { threads: count, clock, random, logger, requestWorker }: RequestPlaneOptions,
  factory: RouterFactory,
  newsOf: (thread: number) => ThreadNews,
  {
    start,
    onDeath,
    onReplaced,
  }: Pick<WorkerThreadsOptions, "onDeath" | "onReplaced"> & {
    readonly start: Omit<WorkerStart, "selector" | "thread" | "clockZeroMs">;
  },
): RequestThreads {
  if (count === 1) return new OwnThread({ ...start, thread: 0, clock, random, factory, news: newsOf(0) });
  const worker = { selector: factory.kind, worker: requestWorker, count };
  return new WorkerThreads({ ...start, ...worker, clock, logger, newsOf, onDeath, onReplaced });
}
