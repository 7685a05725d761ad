import {
  type ClassSpec,
  type Clock,
  type ClusterSpec,
  type Fleet,
  type Random,
  rttMsOf,
  seededRandom,
  systemClock,
} from "@guidevane/core";
import { startArrivals } from "./arrivals.ts";
import { Conversations } from "./conversations.ts";
import { DriveClient, type Driven } from "./drive-client.ts";
import { type DriveCell, DriveTally } from "./drive-tally.ts";

export interface DriveOptions {
  readonly fleet: Fleet;
  /** Base URL of a gateway, by cluster; clusters left out are not driven. */
  readonly gateways: ReadonlyMap<string, string>;
  readonly seed: number;
  /** Part of the requests that ask for a stream, 0..1. Default 0.5. */
  readonly streamPart?: number | undefined;
  readonly clock?: Clock | undefined;
}

/** What came of the requests since the report before. */
export interface DriveReport {
  readonly elapsedMs: number;
  readonly cells: readonly DriveCell[];
  /** Requests under way. */
  readonly inFlight: number;
  /** The most that a request was sent after its time: above some ms the driver itself was too slow. */
  readonly lateMs: number;
}

export interface Drive {
  /** Counts since it was called last, and begins anew. */
  report(): DriveReport;
  /** No more arrivals; resolves when what was under way has ended, cut off after `graceMs` (default 2000). */
  stop(graceMs?: number): Promise<void>;
}

/**
 * Drives a fleet's `demandRps` through its gateways, each from when it listens: Poisson arrivals, open loop, conversations
 * with a session id each. On one machine all clusters and engines are near; the round trip of the network file between
 * the cluster and the engine that answered (`x-guidevane-engine`) is added to what was measured.
 */
export function startDrive(options: DriveOptions): Drive {
  const { fleet, seed, streamPart = 0.5, clock = systemClock } = options;
  const clients: DriveClient[] = [];
  const stops: (() => void)[] = [];
  const tallies: DriveTally[] = [];
  const underWay = new Set<Promise<void>>();
  let lateMs = 0;
  let reportedMs = clock.nowMs();

  for (const [cluster, url] of options.gateways) {
    const place = fleet.clusters.get(cluster);
    if (place === undefined) continue;
    const client = new DriveClient(url, clock);
    clients.push(client);
    const begins: (() => void)[] = [];
    for (const [requestClass, rateRps] of fleet.demandRps.get(cluster) ?? []) {
      const spec = fleet.classes.get(requestClass);
      if (spec === undefined) continue;
      const random = seededRandom(seed + tallies.length);
      const tally = new DriveTally(cluster, requestClass);
      tallies.push(tally);
      const nextRequest = requestsOf(spec, cluster, streamPart, random);
      const send = async () => {
        const { headers, body, stream } = nextRequest();
        tally.sent();
        const driven = await client.post("/v1/chat/completions", headers, body, stream);
        tally.ended(driven, networkMs(fleet, place, driven));
      };
      const arrive = (late: number) => {
        lateMs = Math.max(lateMs, late);
        const sending = send().finally(() => underWay.delete(sending));
        underWay.add(sending);
      };
      begins.push(() => stops.push(startArrivals(rateRps, clock, random, arrive)));
    }
    // Traffic that begins before its gateway listens would be counted as failures of the gateway.
    stops.push(
      whenListening(client, clock, () => {
        for (const begin of begins) begin();
      }),
    );
  }

  return {
    report() {
      const nowMs = clock.nowMs();
      const report = {
        elapsedMs: nowMs - reportedMs,
        cells: tallies.map((tally) => tally.take()),
        inFlight: underWay.size,
        lateMs,
      };
      reportedMs = nowMs;
      lateMs = 0;
      return report;
    },
    async stop(graceMs = 2000) {
      for (const stop of stops) stop();
      const closeAll = () => {
        for (const client of clients) client.close();
      };
      const cancel = clock.after(graceMs, closeAll);
      await Promise.all(underWay);
      cancel();
      closeAll();
    },
  };
}

interface DriveRequest {
  readonly headers: Record<string, string>;
  readonly body: string;
  readonly stream: boolean;
}

/** One request after another of a class's conversations. */
function requestsOf(spec: ClassSpec, cluster: string, streamPart: number, random: Random): () => DriveRequest {
  const conversations = new Conversations(`${cluster}-${spec.name}`, spec.promptTokens, random);
  const tokens = Math.max(1, Math.round(spec.outputTokens));
  return () => {
    const { session, messages } = conversations.next();
    const stream = random() < streamPart;
    return {
      headers: { "x-session-id": session, "x-guidevane-class": spec.name },
      body: JSON.stringify({ model: spec.model, messages, max_tokens: tokens, stream }),
      stream,
    };
  };
}

/** Asks every 100 ms until something answers, whatever it says; returns the way to stop asking. */
function whenListening(client: DriveClient, clock: Clock, begin: () => void): () => void {
  let stopped = false;
  let cancel = () => {};
  const ask = async () => {
    const listens = await client.isListening();
    if (stopped) return;
    if (listens) begin();
    else cancel = clock.after(ASK_EVERY_MS, () => void ask());
  };
  void ask();
  return () => {
    stopped = true;
    cancel();
  };
}

const ASK_EVERY_MS = 100;

function networkMs(fleet: Fleet, cluster: ClusterSpec, { engine }: Driven): number {
  const spec = engine === null ? undefined : fleet.engines.get(engine);
  return spec === undefined ? 0 : rttMsOf(fleet, cluster, spec);
}
