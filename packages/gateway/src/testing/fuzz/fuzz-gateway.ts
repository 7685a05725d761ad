import type { Gateway } from "../../gateway.ts";
import { fleetOf, startTestGateway } from "../fleet.ts";
import { RawClient } from "../raw-client.ts";
import { eventually } from "../setup.ts";
import { type FuzzRun, fuzzClient } from "./fuzz-client.ts";
import { FuzzEngine, PLAIN } from "./fuzz-engine.ts";

export interface FuzzReport {
  readonly rounds: number;
  readonly connections: number;
  /** Requests that the engine got. */
  readonly requests: number;
  /** The most that was held after a round. */
  readonly memoryBytes: number;
  /** What was broken, and by which bytes; empty = nothing. */
  readonly complaints: readonly string[];
}

export interface FuzzOptions {
  readonly seed: number;
  /** Connections at once, which are a round. */
  readonly connections: number;
  /** Asked after each round. */
  readonly goOn: (rounds: number) => boolean;
}

const MEMORY_BYTES = 400 * 1024 * 1024;
const SETTINGS = `aliases: { fast: m }
gateway:
  retry: { attempts: 1 }
  timers: { connectMs: 1000, headMs: 300, firstTokenMs: 300, idleMs: 300 }
  limits: { headMs: 300, bodyMs: 300, bodyBytes: 65536 }`;
/** What a gateway that has nothing to wait for needs at most, on a busy machine. */
const QUIET_MS = 15_000;

/**
 * Changed requests and changed answers at a gateway in this process, round after round until one breaks what must hold:
 * what comes back is HTTP, no more answers than requests, each of them its own; an engine gets whole requests that a client
 * sent, each at most twice (the second time on a fresh connection); after each round nothing is in flight, a plain request
 * gets its answer, memory is within a bound, and nothing was thrown that nobody foresaw.
 */
export async function fuzzGateway({ seed, connections, goOn }: FuzzOptions): Promise<FuzzReport> {
  const complaints: string[] = [];
  const complainOf = (error: unknown): void => {
    complaints.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
  };
  for (const event of THROWN) process.on(event, complainOf);
  const engine = await FuzzEngine.start(seed);
  const logger = { info() {}, warn() {}, error: (...said: unknown[]) => complainOf(`logged ${JSON.stringify(said)}`) };
  const gateway = await startTestGateway(await fleetOf({ a: engine.url }, SETTINGS), { logger });
  let rounds = 0;
  let requests = 0;
  let memoryBytes = 0;
  try {
    do {
      const numbers = Array.from({ length: connections }, (_, at) => rounds * connections + at);
      const runs = await Promise.all(numbers.map((number) => fuzzClient(gateway.url, seed, number)));
      complaints.push(...runs.flatMap((run) => run.complaints), ...engine.complaints.splice(0));
      requests += engine.seen.length;
      complaints.push(...unsent(runs, engine), ...(await unquiet(gateway)));
      engine.seen.length = 0;
      globalThis.gc?.();
      const { heapUsed, arrayBuffers } = process.memoryUsage();
      memoryBytes = Math.max(memoryBytes, heapUsed + arrayBuffers);
      if (memoryBytes > MEMORY_BYTES) complaints.push(`${memoryBytes} bytes are held`);
      rounds += 1;
    } while (complaints.length === 0 && goOn(rounds));
  } finally {
    await gateway.stop(0);
    engine.stop();
    for (const event of THROWN) process.off(event, complainOf);
  }
  return { rounds, connections: rounds * connections, requests, memoryBytes, complaints };
}

const THROWN = ["uncaughtException", "unhandledRejection"] as const;

/** What the engine got that no client sent, or more often than it may. */
function unsent(runs: readonly FuzzRun[], { seen }: FuzzEngine): string[] {
  const allowed = new Map<string, number>();
  for (const text of runs.flatMap(({ bodies }) => bodies).map(unaliased))
    allowed.set(text, (allowed.get(text) ?? 0) + 2);
  return seen.flatMap(({ startLine, body }) => {
    const text = unaliased(body.toString("latin1"));
    const left = allowed.get(text) ?? 0;
    allowed.set(text, left - 1);
    return left > 0 ? [] : [`an engine got what nobody sent, or too often: ${startLine} ${JSON.stringify(text)}`];
  });
}

/** An engine is sent the model's own name; which of two was replaced is not for this to say. */
function unaliased(body: string): string {
  return body.replaceAll('"fast"', '"m"');
}

/** What the gateway still holds when all clients have gone, and whether it serves. */
async function unquiet(gateway: Gateway): Promise<string[]> {
  const quiet = eventually(async () => {
    const engines = (await (await fetch(`${gateway.adminUrl}/v1/engines`)).json()) as { inFlight: number }[];
    return engines.every(({ inFlight }) => inFlight === 0);
  });
  if (!(await within(quiet, QUIET_MS))) return [`something is still in flight after ${QUIET_MS} ms`];
  let status = 0;
  const plain = async (): Promise<void> => {
    // More than once, since a connection may have been spoilt for the first.
    for (let at = 0; at < 3 && status !== 200; at++) {
      const client = await RawClient.connect(gateway.url);
      client.post("/v1/chat/completions", PLAIN);
      status = await client.answer().then(
        (answer) => answer.status,
        () => 0,
      );
      client.close();
    }
  };
  await within(plain(), QUIET_MS);
  return status === 200 ? [] : [`a plain request after the round was answered ${status}`];
}

async function within(promise: Promise<void>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  try {
    return await Promise.race([promise.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
