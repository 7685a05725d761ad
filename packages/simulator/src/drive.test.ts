import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type Fleet, loadFleet, ManualClock, seededRandom } from "@guidevane/core";
import { afterEach, describe, expect, it } from "vitest";
import { startArrivals } from "./arrivals.ts";
import { Conversations } from "./conversations.ts";
import { type Drive, type DriveOptions, startDrive } from "./drive.ts";
import { DriveTally } from "./drive-tally.ts";

describe("arrivals", () => {
  it("are Poisson: gaps exponential, counts with the variance of their mean", () => {
    const clock = new ManualClock();
    const times: number[] = [];
    const stop = startArrivals(50, clock, seededRandom(2), () => times.push(clock.nowMs()));
    clock.advance(200_000);
    stop();
    expect(Math.abs(times.length / 10_000 - 1)).toBeLessThan(0.03);
    const gaps = times.slice(1).map((time, index) => time - times[index]!);
    const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length;
    // Of exponential gaps e⁻ⁿ are longer than n times their mean.
    for (const times of [1, 2, 3]) {
      const longer = gaps.filter((gap) => gap > times * mean).length / gaps.length;
      expect(longer).toBeCloseTo(Math.exp(-times), 1.5);
    }
  });

  it("make up for a clock that jumped, and say how late each one is", () => {
    const clock = new ManualClock();
    const late: number[] = [];
    // A clock that wakes its timers only every 100 ms, as a busy process does.
    const coarse = {
      ...clock,
      nowMs: () => Math.ceil(clock.nowMs() / 100) * 100,
      wallMs: () => 0,
      after: clock.after.bind(clock),
    };
    startArrivals(1000, coarse, seededRandom(1), (lateMs) => late.push(lateMs));
    clock.advance(10_000);
    expect(Math.abs(late.length / 10_000 - 1)).toBeLessThan(0.05);
    expect(Math.max(...late)).toBeGreaterThan(50);
    expect(Math.max(...late)).toBeLessThanOrEqual(100);
  });

  it("are none at rate 0, and end when stopped", () => {
    const clock = new ManualClock();
    let count = 0;
    startArrivals(0, clock, seededRandom(1), () => count++);
    const stop = startArrivals(10, clock, seededRandom(1), () => count++);
    clock.advance(5000);
    const before = count;
    expect(before).toBeGreaterThan(20);
    stop();
    clock.advance(5000);
    expect(count).toBe(before);
  });
});

describe("conversations", () => {
  it("take turns of one length under one session, then end", () => {
    const talk = new Conversations("a", 64, seededRandom(3), 50);
    const turns = new Map<string, number[]>();
    for (let i = 0; i < 2000; i++) {
      const { session, messages } = talk.next();
      const bytes = Buffer.byteLength(messages.map((each) => each.content).join("\n"));
      expect(Math.abs(bytes - 256)).toBeLessThan(8);
      expect(messages.at(-1)!.role).toBe("user");
      turns.set(session, [...(turns.get(session) ?? []), messages.length]);
    }
    expect(turns.size).toBeGreaterThan(500);
    const whole = [...turns.values()].filter((lengths) => lengths[0] === 1 && lengths.length === 4);
    expect(whole.length).toBeGreaterThan(300);
    for (const lengths of whole) expect(lengths).toEqual([1, 3, 5, 7]);
    expect(Math.max(...[...turns.values()].map((lengths) => lengths.length))).toBe(4);
  });
});

describe("a tally", () => {
  it("has means and percentiles of whole answers, the network's round trip in them", () => {
    const tally = new DriveTally("a", "chat");
    for (let ms = 1; ms <= 100; ms++) {
      tally.sent();
      tally.ended({ failure: null, engine: ms <= 25 ? "near" : "far", firstByteMs: 1, totalMs: ms }, 10);
    }
    tally.sent();
    tally.ended({ failure: "http 503", engine: null, firstByteMs: null, totalMs: 5 }, 0);
    expect(tally.take()).toEqual({
      cluster: "a",
      class: "chat",
      sent: 101,
      answered: 100,
      failures: { "http 503": 1 },
      engines: { near: 25, far: 75 },
      meanMs: 60.5,
      p50Ms: 60,
      p95Ms: 105,
      p99Ms: 109,
      firstByteMs: 11,
      networkMs: 10,
    });
    expect(tally.take()).toMatchObject({ sent: 0, answered: 0, meanMs: null, p99Ms: null, failures: {}, engines: {} });
  });
});

const FLEET = `
clusters: { a: { region: ra }, b: { region: rb } }
engines:
  near: { url: "http://127.0.0.1:1", region: ra, models: [m], capacityWps: 100 }
  far: { url: "http://127.0.0.1:2", region: rb, models: [m], capacityWps: 100 }
classes: { chat: { model: m, promptTokens: 16, outputTokens: 2 } }
network: { file: rtt.csv }
demandRps: { a: { chat: 100 }, b: { chat: 0 } }
`;

/** Long enough that a busy machine's answers all come. */
const GRACE_MS = 60_000;

const running: { drive?: Drive; server?: Server } = {};

afterEach(async () => {
  await running.drive?.stop(GRACE_MS);
  running.server?.closeAllConnections();
  running.server?.close();
  running.drive = undefined as never;
  running.server = undefined as never;
});

async function fleet(): Promise<Fleet> {
  return loadFleet(FLEET, "fleet", async () => "from,to,rtt_ms\nra,rb,70\nra,ra,3\nrb,rb,3\n");
}

/** A gateway stand-in that answers by `handle`; resolves `enough` after so many requests. */
async function gateway(
  count: number,
  handle: (request: IncomingMessage, body: { stream: boolean }, response: ServerResponse) => void,
): Promise<{ url: string; enough: Promise<void>; sessions: Set<string> }> {
  const sessions = new Set<string>();
  let seen = 0;
  let tell = () => {};
  const enough = new Promise<void>((resolve) => {
    tell = resolve;
  });
  const server = createServer(async (request, response) => {
    if (request.method === "GET") return void response.end("{}");
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    sessions.add(String(request.headers["x-session-id"]));
    handle(request, JSON.parse(Buffer.concat(chunks).toString()), response);
    seen += 1;
    if (seen === count) response.once("close", tell);
  });
  running.server = server;
  await once(server.listen(0, "127.0.0.1"), "listening");
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, enough, sessions };
}

function answer(response: ServerResponse, stream: boolean, engine: string): void {
  response.setHeader("x-guidevane-engine", engine);
  response.end(stream ? 'data: {"choices":[]}\n\ndata: [DONE]\n\n' : '{"choices":[]}');
}

async function driveAt(url: string, options: Partial<DriveOptions> = {}): Promise<Drive> {
  const drive = startDrive({ fleet: await fleet(), gateways: new Map([["a", url]]), seed: 1, ...options });
  running.drive = drive;
  return drive;
}

describe("driving a gateway", () => {
  it("counts where answers came from, and adds the round trip to the engine that gave them", async () => {
    let turn = 0;
    const { url, enough, sessions } = await gateway(100, (_request, body, response) =>
      answer(response, body.stream, turn++ % 4 === 0 ? "far" : "near"),
    );
    const drive = await driveAt(url);
    await enough;
    await drive.stop(GRACE_MS);
    const [cell] = drive.report().cells;
    const { near = 0, far = 0 } = cell!.engines;
    expect(near + far).toBe(cell!.answered);
    expect(cell!.answered).toBeGreaterThanOrEqual(100);
    expect(cell!.failures).toEqual({});
    expect(far / cell!.answered).toBeCloseTo(0.25, 1);
    expect(cell!.networkMs).toBeCloseTo((3 * near + 70 * far) / (near + far), 9);
    expect(cell!.meanMs! - cell!.networkMs!).toBeGreaterThan(0);
    expect(sessions.size).toBeGreaterThan(50);
  });

  it("names what went wrong: a status with its code, a stream without its end, a broken connection", async () => {
    let turn = 0;
    const { url, enough } = await gateway(90, (_request, body, response) => {
      const kind = turn++ % 3;
      if (kind === 0) response.writeHead(503).end('{"error":{"code":"no_eligible_engine"}}');
      else if (kind === 1) response.end(body.stream ? 'data: {"choices":[]}\n\n' : '{"choices":');
      else response.destroy();
    });
    const drive = await driveAt(url);
    await enough;
    await drive.stop(GRACE_MS);
    const { failures, answered } = drive.report().cells[0]!;
    expect(answered).toBe(0);
    expect(Object.keys(failures).sort()).toEqual([
      "ECONNRESET",
      "http 503 no_eligible_engine",
      "not a whole JSON answer",
      "stream without its end",
    ]);
  });

  it("asks for streams in the part that was asked for", async () => {
    let streams = 0;
    const { url, enough } = await gateway(40, (_request, body, response) => {
      if (body.stream) streams += 1;
      answer(response, body.stream, "near");
    });
    const drive = await driveAt(url, { streamPart: 1 });
    await enough;
    expect(streams).toBeGreaterThanOrEqual(40);
    await drive.stop(GRACE_MS);
  });

  it("begins when its gateway listens, and has no failures from before", async () => {
    // A port that was free a moment ago and that nothing listens on yet.
    const probe = createServer();
    await once(probe.listen(0, "127.0.0.1"), "listening");
    const { port } = probe.address() as AddressInfo;
    probe.close();
    await once(probe, "close");
    const drive = await driveAt(`http://127.0.0.1:${port}`);
    let tell = () => {};
    const served = new Promise<void>((resolve) => {
      tell = resolve;
    });
    const server = createServer(async (request, response) => {
      if (request.method === "GET") return void response.end("{}");
      for await (const _ of request);
      answer(response, false, "near");
      tell();
    });
    running.server = server;
    server.listen(port, "127.0.0.1");
    await served;
    await drive.stop(GRACE_MS);
    expect(Object.keys(drive.report().cells[0]!.failures).filter((failure) => failure.startsWith("ECONN"))).toEqual([]);
  });
});
