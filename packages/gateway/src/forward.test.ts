import { createHash } from "node:crypto";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { seededRandom } from "@guidevane/core";
import { afterEach, describe, expect, it } from "vitest";
import { headerIn } from "./testing/raw-client.ts";
import { chunked, type EngineRequestSeen, jsonAnswer, LAST_CHUNK, STREAM_HEAD } from "./testing/scripted-engine.ts";
import { CHAT, createSetup, eventually, metric, PLAIN_BODY, STREAM_BODY } from "./testing/setup.ts";

const setup = createSetup(afterEach);

const good = ({ socket }: EngineRequestSeen): void => {
  socket.write(jsonAnswer('{"ok":1}'));
};

describe("forwarding", () => {
  it("B038: passes a body and its answer on byte for byte", async () => {
    const answer = '{ "id":1,\n "odd" : "\\u00e9" }';
    const engine = await setup.engine(({ socket }) => socket.write(jsonAnswer(answer)));
    const client = await setup.client(await setup.before({ a: engine }));
    const odd = `  {"model" : "m", "x":1e999999, "messages":[ ] , "n":0.10}\n`;
    client.post(`${CHAT}?trace=1&x=%20`, odd);
    const got = await client.answer();
    expect(got.status).toBe(200);
    expect(got.body.toString()).toBe(answer);
    expect(engine.requests[0]?.body.toString()).toBe(odd);
    expect(engine.requests[0]?.requestLine).toBe(`POST ${CHAT}?trace=1&x=%20 HTTP/1.1`);
  });

  it.each(["/v1/completions", "/v1/embeddings"])("serves %s", async (path) => {
    const engine = await setup.engine(good);
    const client = await setup.client(await setup.before({ a: engine }));
    client.post(path, '{"model":"m","prompt":"p","input":"i"}');
    expect((await client.answer()).status).toBe(200);
    expect(engine.requests[0]?.requestLine).toBe(`POST ${path} HTTP/1.1`);
  });

  it("B040: passes streams on byte for byte, wherever their chunks are cut", async () => {
    const random = seededRandom(7);
    for (let round = 0; round < 8; round++) {
      const events = Array.from({ length: 60 }, (_, i) => `data: {"i":${i},"text":"é🦊 ${"x".repeat(i * 7)}"}\n\n`);
      const whole = Buffer.from(`${events.join("")}data: [DONE]\n\n`);
      const wire: Buffer[] = [];
      for (let at = 0; at < whole.length; ) {
        const size = 1 + Math.floor(random() * 200);
        wire.push(chunked(whole.subarray(at, at + size)));
        at += size;
      }
      const bytes = Buffer.concat([Buffer.from(STREAM_HEAD), ...wire, Buffer.from(LAST_CHUNK)]);
      const engine = await setup.engine(({ socket }) => {
        let at = 0;
        const next = (): void => {
          const size = 1 + Math.floor(random() * 300);
          socket.write(bytes.subarray(at, at + size));
          at += size;
          if (at < bytes.length) setImmediate(next);
        };
        next();
      });
      const client = await setup.client(await setup.before({ a: engine }));
      client.post(CHAT, STREAM_BODY);
      const got = await client.answer();
      expect(got.body.equals(whole)).toBe(true);
      expect(headerIn(got, "content-type")).toBe("text/event-stream; charset=utf-8");
    }
  });

  it("writes once what arrives at once", async () => {
    const events = Array.from({ length: 50 }, (_, i) => chunked(`data: ${i}\n\n`));
    const engine = await setup.engine(({ socket }) =>
      socket.write(
        Buffer.concat([Buffer.from(STREAM_HEAD), ...events, chunked("data: [DONE]\n\n"), Buffer.from(LAST_CHUNK)]),
      ),
    );
    const client = await setup.client(await setup.before({ a: engine }));
    client.post(CHAT, STREAM_BODY);
    await client.until(`\r\n${LAST_CHUNK}`);
    const chunks = client.received.toString("latin1").match(/\r\n[0-9a-f]+\r\n/g) ?? [];
    // 51 chunks came in one segment; they leave as one, or a few where the segment was cut.
    expect(chunks.length).toBeLessThan(10);
  });

  it("B161: has no queue of its own: an engine has all requests at once, and none is left behind", async () => {
    const held: EngineRequestSeen[] = [];
    const engine = await setup.engine((request) => void held.push(request));
    const gateway = await setup.before({ a: engine }, "classes: { m: { model: m, work: 0.01 } }");
    const clients = await Promise.all(Array.from({ length: 1000 }, () => setup.client(gateway)));
    for (const [i, client] of clients.entries())
      client.post(CHAT, `{"model":"m","messages":[{"role":"user","content":"${i}"}]}`);
    await eventually(() => held.length === 1000);
    expect(engine.connections).toBe(1000);
    await eventually(async () => (await metric(gateway, 'guidevane_in_flight{engine="a"}')) === 1000);
    // Each gets its own answer back: what it asked.
    for (const { socket, body } of held) socket.write(jsonAnswer(body.toString()));
    for (const [i, client] of clients.entries())
      expect((await client.answer()).body.toString()).toContain(`"content":"${i}"`);
    await eventually(async () => (await metric(gateway, 'guidevane_in_flight{engine="a"}')) === 0);
  }, 60_000);

  it("B024: asks an engine for no more while its client reads nothing", async () => {
    const engine = await setup.engine();
    const client = await setup.client(await setup.before({ a: engine }));
    client.socket.pause();
    client.post(CHAT, STREAM_BODY);
    const { socket } = await engine.next();
    socket.write(STREAM_HEAD);
    const piece = Buffer.alloc(65_536, "x");
    const sent = createHash("sha256");
    let sentBytes = 0;
    let idleTurns = 0;
    // Until the engine's own socket takes no more for a good while: everything on the way is full.
    while (idleTurns < 2000) {
      if (socket.writableNeedDrain) idleTurns += 1;
      else {
        idleTurns = 0;
        socket.write(chunked(piece));
        sent.update(piece);
        sentBytes += piece.length;
      }
      await new Promise((resolve) => setImmediate(resolve));
      expect(sentBytes).toBeLessThan(64 * 1024 * 1024);
    }
    socket.write(Buffer.concat([chunked("data: [DONE]\n\n"), Buffer.from(LAST_CHUNK)]));
    sent.update("data: [DONE]\n\n");
    client.socket.resume();
    const got = await client.answer();
    expect(createHash("sha256").update(got.body).digest("hex")).toBe(sent.digest("hex"));
  });

  it("B037: lets a compressed body through as it is and reads its fields", async () => {
    const engine = await setup.engine(good);
    const gateway = await setup.before({ a: engine });
    const client = await setup.client(gateway);
    for (const [coding, bytes] of [
      ["gzip", gzipSync(PLAIN_BODY)],
      ["br", brotliCompressSync(PLAIN_BODY)],
    ] as const) {
      client.post(CHAT, bytes, { "content-encoding": coding });
      expect((await client.answer()).status).toBe(200);
      expect(engine.requests.at(-1)?.body.equals(bytes)).toBe(true);
    }
    expect(await metric(gateway, 'guidevane_requests_total{class="m",outcome="success"}')).toBe(2);
  });
});
