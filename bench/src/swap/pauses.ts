import { type ChildProcess, fork } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { type ClusterSnapshot, snapshotTag, writeFeedEvent } from "@guidevane/core";
import { largeFleet, largeSnapshot, MODELS } from "./fleet.ts";
import type { Turn } from "./turns.ts";

const WARM_MS = 2000;
const SETTLE_MS = 1000;
const REQUEST_EVERY_MS = 10;
/** More often than a control plane tells signals and a Prometheus asks, so that each window has both. */
const ROUTINE_EVERY_MS = 500;

/** The longest turn of a request thread's event loop in a while. */
export interface Pause extends Turn {
  /** The longest turn, meanwhile, of a thread in another process that has nothing to do. */
  readonly yardstickMs: number;
}

export interface SwapPauses {
  /** While a snapshot came in, for each of some. The first one was the first ever, and the thread that reads them began. */
  readonly swaps: readonly Pause[];
  /** Each as long, without one. */
  readonly still: readonly Pause[];
}

/**
 * What a request thread of a whole gateway is kept from its requests for while a snapshot of so many engines and classes
 * comes in: fetched from a control plane over HTTP, checked, made ready, swapped, and its predecessor let go, under a
 * hundred requests/s, while it hears of the engines' signals and is scraped.
 */
export async function swapPauses(
  threads: number,
  engines: number,
  classes: number,
  count: number,
): Promise<SwapPauses> {
  const stub = await startStub();
  const fleet = await largeFleet(engines, classes, (id) => `${stub.url}/${id}`);
  const publications = Array.from({ length: count }, (_, at) => wireOf(largeSnapshot(fleet, at + 1)));
  const plane = await startPlane([...fleet.engines.keys()]);
  const child = start("./gateway-process.ts", [engines, classes, threads, plane.url, stub.url]);
  const [{ url, adminUrl }] = (await once(child, "message")) as [{ url: string; adminUrl: string }];
  const yardstick = start("./yardstick-process.ts", []);
  await once(yardstick, "message");
  const longestPause = async (): Promise<Pause> => {
    const [turn, still] = await Promise.all([longestTurn(child), longestTurn(yardstick)]);
    return { ...turn, yardstickMs: still.ms };
  };
  let version = 0;
  const stopAsking = keepAsking(url, classes, (seen) => {
    version = seen;
  });
  const stopScraping = repeat(ROUTINE_EVERY_MS, async () => {
    await (await fetch(`${adminUrl}/metrics`)).text();
  });
  try {
    await pause(WARM_MS);
    const swaps: Pause[] = [];
    const still: Pause[] = [];
    for (const [at, wire] of publications.entries()) {
      await longestPause();
      await pause(SETTLE_MS);
      still.push(await longestPause());
      plane.publish(wire);
      await until(() => version === at + 1);
      // What follows a swap belongs to it: the old one is let go, sums are made anew.
      await pause(SETTLE_MS);
      swaps.push(await longestPause());
    }
    return { swaps, still };
  } finally {
    await Promise.all([stopAsking(), stopScraping()]);
    await Promise.all([child, yardstick].map(end));
    plane.stop();
    stub.stop();
  }
}

function start(script: string, args: readonly unknown[]): ChildProcess {
  const execArgv = ["--conditions=@guidevane/source"];
  return fork(fileURLToPath(new URL(script, import.meta.url)), args.map(String), { execArgv });
}

async function end(child: ChildProcess): Promise<void> {
  child.disconnect();
  await once(child, "exit");
}

/** Of a process that watches its own, since it was last asked. */
async function longestTurn(child: ChildProcess): Promise<Turn> {
  child.send("look");
  const [turn] = (await once(child, "message")) as [Turn];
  return turn;
}

interface Wire {
  readonly tag: string;
  readonly bytes: Buffer;
  readonly sha256: string;
}

function wireOf(snapshot: ClusterSnapshot): Wire {
  const json = JSON.stringify(snapshot);
  return {
    tag: snapshotTag(snapshot),
    bytes: gzipSync(json),
    sha256: createHash("sha256").update(json).digest("hex"),
  };
}

/** An engine that answers at once. */
async function startStub() {
  const server = createServer((request, response) => {
    request.resume();
    response.end('{"choices":[]}');
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop(): void {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** A control plane as far as a gateway needs one. */
async function startPlane(engines: readonly string[]) {
  let current: Wire | null = null;
  const signal = { value: 1, state: "fresh", ageMs: 900 } as const;
  const signals = { running: signal, waiting: signal, kvUsage: signal, readyReplicas: signal };
  const data = { engines: Object.fromEntries(engines.map((id) => [id, signals])) };
  const text = writeFeedEvent({ event: "signals", data });
  const feeds = new Set<ServerResponse>();
  const telling = setInterval(() => {
    for (const feed of feeds) feed.write(text);
  }, ROUTINE_EVERY_MS);
  const polls = new Set<ServerResponse>();
  const answer = (response: ServerResponse, { tag, bytes, sha256 }: Wire): void => {
    response.writeHead(200, {
      "content-type": "application/json",
      "content-encoding": "gzip",
      "content-length": bytes.length,
      etag: `"${tag}"`,
      "x-guidevane-checksum": sha256,
    });
    response.end(bytes);
  };
  const server = createServer((request, response) => {
    request.resume();
    if (request.url!.startsWith("/v1/feed")) {
      response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
      feeds.add(response);
    } else if (!request.url!.startsWith("/v1/snapshot")) response.writeHead(204).end();
    else if (current === null || request.headers["if-none-match"] === `"${current.tag}"`) polls.add(response);
    else answer(response, current);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    publish(wire: Wire): void {
      current = wire;
      for (const response of polls) answer(response, wire);
      polls.clear();
    },
    stop(): void {
      clearInterval(telling);
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Sends requests of all classes one after the other, until stopped; tells the snapshot that each was routed by. */
function keepAsking(url: string, classes: number, onSnapshot: (version: number) => void): () => Promise<void> {
  let asked = 0;
  const ask = async (): Promise<void> => {
    const body = `{"model":"m${asked % MODELS}","messages":[{"role":"user","content":"talk ${asked}"}]}`;
    const headers = { "content-type": "application/json", "x-guidevane-class": `k${asked++ % classes}` };
    const answer = await fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body });
    const text = await answer.text();
    if (answer.status !== 200) throw new Error(`a request was answered ${answer.status}: ${text}`);
    onSnapshot(Number(answer.headers.get("x-guidevane-snapshot")));
  };
  return repeat(REQUEST_EVERY_MS, ask);
}

/** Begins it again and again until stopped, whether the last one is over or not. */
function repeat(everyMs: number, task: () => Promise<void>): () => Promise<void> {
  const running = new Set<Promise<void>>();
  const timer = setInterval(() => {
    const doing = task().finally(() => running.delete(doing));
    running.add(doing);
  }, everyMs);
  return async () => {
    clearInterval(timer);
    await Promise.all(running);
  };
}

/** @throws when it is not so within a minute */
async function until(isSo: () => boolean): Promise<void> {
  for (let turn = 0; !isSo(); turn++) {
    if (turn === 3000) throw new Error("no request was routed by the new snapshot within a minute");
    await pause(20);
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
