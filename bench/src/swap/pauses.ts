import { fork } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { type ClusterSnapshot, snapshotTag } from "@guidevane/core";
import { largeFleet, largeSnapshot, MODELS } from "./fleet.ts";

const WARM_MS = 2000;
const SETTLE_MS = 1000;
const REQUEST_EVERY_MS = 10;

/** Longest turns of a request thread's event loop, ms. */
export interface SwapPauses {
  /** While a snapshot came in, for each of some. The first one was the first ever, and the thread that reads them began. */
  readonly swaps: readonly number[];
  /** Each as long, without one. */
  readonly still: readonly number[];
}

/**
 * What a request thread of a whole gateway is kept from its requests for while a snapshot of so many engines and classes
 * comes in: fetched from a control plane over HTTP, checked, made ready, swapped, and its predecessor let go, under a
 * hundred requests/s.
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
  const plane = await startPlane();
  const child = fork(
    fileURLToPath(new URL("./gateway-process.ts", import.meta.url)),
    [engines, classes, threads, plane.url, stub.url].map(String),
    { execArgv: ["--conditions=@guidevane/source"] },
  );
  const [{ url }] = (await once(child, "message")) as [{ url: string }];
  const longestTurnMs = async (): Promise<number> => {
    child.send("look");
    const [answer] = (await once(child, "message")) as [{ longestTurnMs: number }];
    return answer.longestTurnMs;
  };
  let version = 0;
  const stopAsking = keepAsking(url, classes, (seen) => {
    version = seen;
  });
  try {
    await pause(WARM_MS);
    const swaps: number[] = [];
    const still: number[] = [];
    for (const [at, wire] of publications.entries()) {
      await longestTurnMs();
      await pause(SETTLE_MS);
      still.push(await longestTurnMs());
      plane.publish(wire);
      await until(() => version === at + 1);
      // What follows a swap belongs to it: the old one is let go, sums are made anew.
      await pause(SETTLE_MS);
      swaps.push(await longestTurnMs());
    }
    return { swaps, still };
  } finally {
    await stopAsking();
    child.disconnect();
    await once(child, "exit");
    plane.stop();
    stub.stop();
  }
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
async function startPlane() {
  let current: Wire | null = null;
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
    if (request.url!.startsWith("/v1/feed"))
      response.writeHead(200, { "content-type": "text/event-stream" }).write(":\n\n");
    else if (!request.url!.startsWith("/v1/snapshot")) response.writeHead(204).end();
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
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Sends requests of all classes one after the other, until stopped; tells the snapshot that each was routed by. */
function keepAsking(url: string, classes: number, onSnapshot: (version: number) => void): () => Promise<void> {
  let asked = 0;
  const running = new Set<Promise<void>>();
  const ask = async (): Promise<void> => {
    const body = `{"model":"m${asked % MODELS}","messages":[{"role":"user","content":"talk ${asked}"}]}`;
    const headers = { "content-type": "application/json", "x-guidevane-class": `k${asked++ % classes}` };
    const answer = await fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body });
    const text = await answer.text();
    if (answer.status !== 200) throw new Error(`a request was answered ${answer.status}: ${text}`);
    onSnapshot(Number(answer.headers.get("x-guidevane-snapshot")));
  };
  const timer = setInterval(() => {
    const asking = ask().finally(() => running.delete(asking));
    running.add(asking);
  }, REQUEST_EVERY_MS);
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
