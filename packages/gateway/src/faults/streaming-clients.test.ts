import { afterEach, describe, expect, it } from "vitest";
import { answersWell, begun, chat, D, DONE, FIN, faultBench, NORMAL } from "../testing/fault-bench.ts";
import { headerIn } from "../testing/raw-client.ts";
import { chunked, type EngineRequestSeen, jsonAnswer, LAST_CHUNK, STREAM_HEAD } from "../testing/scripted-engine.ts";
import { CHAT, createSetup, eventually, metric, PLAIN_BODY } from "../testing/setup.ts";

/** Clients that leave, reset, ask oddly or send much. */

const setup = createSetup(afterEach);

describe("a client that leaves", () => {
  it("B023: a whole answer that it waits for: the engine is told within a second, fifty times in a row", async () => {
    const bench = await faultBench(setup, { a: () => {} });
    for (let i = 0; i < 50; i++) {
      const client = await bench.client();
      client.post(CHAT, PLAIN_BODY);
      const { closed } = await bench.engines.a!.next();
      const fromMs = performance.now();
      client.close();
      await closed;
      expect(performance.now() - fromMs).toBeLessThan(1000);
    }
    await eventually(
      async () => (await metric(bench.gateway, 'guidevane_requests_total{class="m",outcome="cancelled"}')) === 50,
    );
    expect(bench.engines.a!.requests).toHaveLength(50);
    await bench.recovers();
  });

  it("B031: by a reset while a large event is written to it ends nothing else", async () => {
    const bench = await faultBench(setup, { a: ({ socket }) => void socket.write(begun(D("x".repeat(1_000_000)))) });
    for (let i = 0; i < 5; i++) {
      const client = await bench.client();
      client.post(CHAT, chat());
      await client.until("data: ");
      client.socket.resetAndDestroy();
    }
    await bench.recovers();
  });
});

describe("engines that break", () => {
  it("B030: all at once after their heads leave each client one head, and the process running", async () => {
    const bench = await faultBench(setup, {
      a: ({ socket }) => void socket.write(begun(D("1")), () => setImmediate(() => socket.resetAndDestroy())),
    });
    const clients = await Promise.all(Array.from({ length: 200 }, () => bench.client()));
    for (const client of clients) client.post(CHAT, chat());
    await Promise.all(clients.map(({ closed }) => closed));
    for (const { received } of clients) expect(received.toString().match(/HTTP\/1\.1 /g)).toHaveLength(1);
    await bench.recovers();
  });

  it("B030: by refusing a hundred requests in a row are answered for in JSON", async () => {
    const bench = await faultBench(setup, { a: answersWell });
    await bench.engines.a!.kill();
    for (let i = 0; i < 100; i++) {
      const answer = await bench.ask();
      expect([502, 503]).toContain(answer.status);
      expect(JSON.parse(answer.body.toString())).toHaveProperty("error.code");
    }
  });

  it("B031: after the last chunk break no answer", async () => {
    const bench = await faultBench(setup, {
      a: ({ socket }) =>
        void socket.write(Buffer.concat([begun(NORMAL), Buffer.from(LAST_CHUNK)]), () => socket.resetAndDestroy()),
    });
    expect((await bench.ask()).body.toString()).toBe(NORMAL);
    await bench.recovers();
  });
});

describe("odd requests", () => {
  it.each([
    "Connection: keep-alive, X-Drop-Me\r\nX-Drop-Me: 1\r\n",
    "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQ\r\n",
  ])("B034: with %j are served without what concerns the connection alone", async (lines) => {
    const bench = await faultBench(setup, { a: answersWell });
    const client = await bench.client();
    const body = chat();
    client.send(`POST ${CHAT} HTTP/1.1\r\nhost: x\r\n${lines}content-length: ${body.length}\r\n\r\n${body}`);
    expect((await client.answer()).status).toBe(200);
    const names = bench.engines.a!.requests[0]!.headers.map(([name]) => name.toLowerCase());
    for (const name of ["connection", "x-drop-me", "upgrade", "http2-settings"]) expect(names).not.toContain(name);
    await bench.recovers();
  });

  it.each([
    ["by length", 3_000_000],
    ["in chunks", 10_000_000],
  ])("B036: with a picture arrive whole, %s, %i bytes", async (framing, size) => {
    const bench = await faultBench(setup, { a: answersWell });
    const url = `data:image/png;base64,${"QUJD".repeat(size / 4)}`;
    const body = chat({ messages: [{ role: "user", content: [{ type: "image_url", image_url: { url } }] }] });
    const client = await bench.client();
    if (framing === "by length") client.post(CHAT, body);
    else {
      client.send(`POST ${CHAT} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n`);
      for (let at = 0; at < body.length; at += 1_000_000) client.send(chunked(body.slice(at, at + 1_000_000)));
      client.send(LAST_CHUNK);
    }
    expect((await client.answer()).status).toBe(200);
    expect(bench.engines.a!.requests.map((seen) => seen.body.equals(Buffer.from(body)))).toEqual([true]);
    await bench.recovers();
  });

  it("B036: over the limit are refused before they are read, and counted", async () => {
    const bench = await faultBench(setup, { a: answersWell }, { extra: "gateway: { limits: { bodyBytes: 1000000 } }" });
    const client = await bench.client();
    client.send(`POST ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-length: 3000000\r\n\r\n{"model":"m"`);
    const answer = await client.answer();
    expect([answer.status, JSON.parse(answer.body.toString()).error.code]).toEqual([413, "body_too_large"]);
    const rejected = 'guidevane_requests_total{class="other",outcome="rejected"}';
    await eventually(async () => (await metric(bench.gateway, rejected)) === 1);
    await bench.recovers();
  });

  it.each([
    ["a model that is no text", '{"model":123}', 400],
    ["bytes that are no text", Buffer.from([0xff, 0xfe]), 400],
    ["brackets without end", "[".repeat(100_000), 400],
    ["objects without end", `{"model":"m","x":${'{"a":'.repeat(100_000)}`, 400],
    ["a byte order mark", `\ufeff${chat()}`, 400],
  ])("B050: of %s are refused, and no engine is asked", async (_what, body, status) => {
    const bench = await faultBench(setup, { a: answersWell });
    const answer = await bench.ask(body);
    expect([answer.status, headerIn(answer, "content-type")]).toEqual([status, "application/json"]);
    expect(bench.engines.a!.requests).toHaveLength(0);
    await bench.recovers();
  });
});

describe("a stream to a client that takes compressed answers", () => {
  it("B040: comes event by event, uncompressed, with what keeps proxies from gathering it", async () => {
    const head = STREAM_HEAD.replace("\r\n\r\n", "\r\nx-accel-buffering: no\r\ncache-control: no-cache\r\n\r\n");
    const bench = await faultBench(setup, { a: ({ socket }) => void socket.write(head) });
    const client = await bench.client();
    client.post(CHAT, chat(), { "accept-encoding": "gzip, br" });
    const { socket } = await bench.engines.a!.next();
    for (let i = 0; i < 20; i++) {
      // Each event is sent when the one before it has arrived.
      socket.write(chunked(D(`n${i}`)));
      await client.until(`"n${i}"`);
    }
    socket.write(Buffer.concat([chunked(FIN + DONE), Buffer.from(LAST_CHUNK)]));
    const answer = await client.answer();
    expect(headerIn(answer, "x-accel-buffering")).toBe("no");
    expect(headerIn(answer, "content-encoding")).toBeUndefined();
    await bench.recovers();
  });
});

describe("a connection that a client keeps", () => {
  it("B047: is kept for longer than balancers keep theirs, and does not hold up the end", async () => {
    const bench = await faultBench(setup, { a: ({ socket }) => void socket.write(jsonAnswer("{}")) });
    const client = await bench.client();
    client.post(CHAT, PLAIN_BODY);
    const answer = await client.answer();
    const seconds = Number(/timeout=(\d+)/.exec(headerIn(answer, "keep-alive") ?? "")?.[1]);
    expect(seconds).toBeGreaterThan(60);
    const fromMs = performance.now();
    await bench.gateway.stop(60_000);
    await client.closed;
    expect(performance.now() - fromMs).toBeLessThan(5000);
  });

  it("B047: is kept for as long as the fleet file says, and no longer", async () => {
    const extra = (ms: number): string => `gateway: { timers: { clientIdleMs: ${ms} } }`;
    const a = ({ socket }: EngineRequestSeen): void => void socket.write(jsonAnswer("{}"));
    // Its clients are told, and node goes by what they are told.
    for (const seconds of [2, 7000]) {
      const bench = await faultBench(setup, { a }, { extra: extra(seconds * 1000) });
      const client = await bench.client();
      for (let i = 0; i < 3; i++) {
        client.post(CHAT, PLAIN_BODY);
        expect(headerIn(await client.answer(), "keep-alive")).toBe(`timeout=${seconds}`);
      }
    }
    const short = await faultBench(setup, { a }, { extra: extra(1) });
    const client = await short.client();
    client.post(CHAT, PLAIN_BODY);
    expect((await client.answer()).status).toBe(200);
    await client.closed;
  });

  it.each([
    [0.4, 9999.5],
    [1e12, 1e12],
  ])("B047: is served where the fleet file says %s ms, and %s ms for a head", async (clientIdleMs, headMs) => {
    const extra = `gateway: { timers: { clientIdleMs: ${clientIdleMs} }, limits: { headMs: ${headMs} } }`;
    const warnings: Error[] = [];
    const note = (warning: Error): void => void warnings.push(warning);
    process.on("warning", note);
    const bench = await faultBench(setup, { a: ({ socket }) => void socket.write(jsonAnswer("{}")) }, { extra });
    expect((await bench.ask()).status).toBe(200);
    process.off("warning", note);
    expect(warnings).toEqual([]);
  });

  it("B047: gives way to a new one at the limit if it is idle, the one idle for longest first, and never with a request", async () => {
    const held: EngineRequestSeen[] = [];
    const extra = "gateway: { limits: { connections: 4 } }";
    const bench = await faultBench(setup, { a: (request) => void held.push(request) }, { extra });
    const clients = await Promise.all([0, 1, 2, 3].map(() => bench.client()));
    const begin = async (at: number): Promise<void> => {
      const before = held.length;
      clients[at]!.post(CHAT, PLAIN_BODY);
      await eventually(() => held.length === before + 1);
    };
    const end = async (at: number): Promise<void> => {
      held.at(-1)!.socket.write(jsonAnswer("{}"));
      expect((await clients[at]!.answer()).status).toBe(200);
    };
    for (const at of [2, 0, 3]) {
      await begin(at);
      await end(at);
    }
    await begin(1);
    const fifth = await bench.client();
    await clients[2]!.closed;
    const [sixth, seventh] = [await bench.client(), await bench.client()];
    await clients[0]!.closed;
    await clients[3]!.closed;
    for (const client of [fifth, sixth, seventh]) client.post(CHAT, PLAIN_BODY);
    await eventually(() => held.length === 7);
    const refused = await bench.client();
    expect((await refused.answer()).status).toBe(503);
    await refused.closed;
    for (const { socket } of held.slice(3)) socket.write(jsonAnswer("{}"));
    for (const client of [clients[1]!, fifth, sixth, seventh]) expect((await client.answer()).status).toBe(200);
  });
});
