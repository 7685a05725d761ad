import { ManualClock } from "@guidevane/core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Gateway } from "./gateway.ts";
import { headerIn } from "./testing/raw-client.ts";
import { chunked, jsonAnswer, LAST_CHUNK, STREAM_HEAD } from "./testing/scripted-engine.ts";
import { CHAT, createSetup, eventually, metric, PLAIN_BODY, STREAM_BODY } from "./testing/setup.ts";

/** What several requests of one connection are answered, each in its turn, and what a client of HTTP/1.0 is. */

const setup = createSetup(afterAll);
const HEAD = `POST ${CHAT} HTTP/1.1\r\nhost: x\r\n`;

const REJECTED = 'guidevane_requests_total{class="other",outcome="rejected"}';

let gateway: Gateway;

beforeAll(async () => {
  const engine = await setup.engine(({ socket }) => socket.write(jsonAnswer("{}")));
  gateway = await setup.before({ a: engine });
});

describe("a refusal", () => {
  it("B033: of an odd expectation comes in its turn, not into the answer before it", async () => {
    const streaming = await setup.engine(({ socket }) =>
      socket.write(Buffer.concat([Buffer.from(STREAM_HEAD), chunked("data: 1\n\n")])),
    );
    const client = await setup.client(await setup.before({ a: streaming }));
    client.post(CHAT, STREAM_BODY);
    await client.until("data: 1");
    client.send(`${HEAD}expect: 200-ok\r\ncontent-length: 2\r\n\r\n{}`);
    client.send(`${HEAD}content-length: 2\r\n\r\n`);
    await new Promise((resolve) => setImmediate(resolve));
    streaming.requests[0]!.socket.write(Buffer.concat([chunked("data: [DONE]\n\n"), Buffer.from(LAST_CHUNK)]));
    expect((await client.answer()).body.toString()).toBe("data: 1\n\ndata: [DONE]\n\n");
    const refused = await client.answer();
    expect([refused.status, JSON.parse(refused.body.toString()).error.code]).toEqual([417, "expectation_failed"]);
    await client.closed;
    expect(streaming.requests).toHaveLength(1);
  });

  it("that closes the connection is not lost by what the client goes on sending", async () => {
    const engine = await setup.engine();
    const own = await setup.before({ a: engine });
    const client = await setup.client(own);
    client.socket.pause();
    client.send(`GET ${CHAT} HTTP/1.1\r\nhost: x\r\n\r\n`);
    await eventually(async () => (await metric(own, REJECTED)) === 1);
    for (let at = 0; at < 3; at++) {
      await new Promise<unknown>((resolve) =>
        client.socket.write(`${HEAD}content-length: 13\r\n\r\n{"model":"m"}`, resolve),
      );
      await new Promise((resolve) => setImmediate(resolve));
    }
    client.socket.resume();
    expect((await client.answer()).status).toBe(405);
    await client.closed;
    expect(engine.requests).toHaveLength(0);
  });

  it.each([
    [431, `GET / HTTP/1.1\r\nx: ${"y".repeat(20_000)}`],
    [400, "GET / HTTP/1.1\r\nx\r\n\r\n"],
    [405, "CONNECT a:80 HTTP/1.1\r\nhost: a:80\r\n\r\n"],
  ])("of what is no request, %s, is not lost by what the client goes on sending", async (status, bytes) => {
    const own = await setup.before({ a: await setup.engine() });
    const client = await setup.client(own);
    client.socket.pause();
    client.send(bytes);
    await eventually(async () => (await metric(own, REJECTED)) === 1);
    for (let at = 0; at < 3; at++) {
      await new Promise<unknown>((resolve) => client.socket.write("y".repeat(1000), resolve));
      await new Promise((resolve) => setImmediate(resolve));
    }
    client.socket.resume();
    expect((await client.answer()).status).toBe(status);
    await client.closed;
    expect(await metric(own, REJECTED)).toBe(1);
  });

  it("of CONNECT is not written into the answer before it, and a client that resets then ends nothing", async () => {
    const slow = await setup.engine();
    const own = await setup.before({ a: slow });
    const client = await setup.client(own);
    client.post(CHAT, PLAIN_BODY);
    await slow.next();
    client.send("CONNECT a:80 HTTP/1.1\r\nhost: a:80\r\n\r\n");
    await client.closed;
    expect(client.received.toString()).toBe("");
    const other = await setup.client(own);
    other.send("CONNECT a:80 HTTP/1.1\r\nhost: a:80\r\n\r\n");
    other.socket.resetAndDestroy();
    const third = await setup.client(own);
    third.send("GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n");
    expect((await third.answer()).status).toBe(200);
  });
});

describe("a client of HTTP/1.0", () => {
  it("gets a stream without chunks, whose end is the connection's", async () => {
    const streaming = await setup.engine(({ socket }) =>
      socket.write(Buffer.concat([Buffer.from(STREAM_HEAD), chunked("data: [DONE]\n\n"), Buffer.from(LAST_CHUNK)])),
    );
    const client = await setup.client(await setup.before({ a: streaming }));
    client.send(`POST ${CHAT} HTTP/1.0\r\ncontent-length: ${Buffer.byteLength(STREAM_BODY)}\r\n\r\n${STREAM_BODY}`);
    await client.closed;
    const [head, body] = client.received.toString().split("\r\n\r\n");
    expect(head).toMatch(/^HTTP\/1\.1 200 /);
    expect(head).not.toMatch(/transfer-encoding/i);
    expect(body).toBe("data: [DONE]\n\n");
  });

  it("has no expectations, so none is refused", async () => {
    const client = await setup.client(gateway);
    client.send(`POST ${CHAT} HTTP/1.0\r\nexpect: anything\r\ncontent-length: 13\r\n\r\n{"model":"m"}`);
    expect((await client.answer()).status).toBe(200);
  });
});

describe("Expect: 100-continue behind another request", () => {
  const expecting = `${HEAD}expect: 100-continue\r\ncontent-length: 13\r\n\r\n`;

  it("whose body came with it is not answered inside the answer", async () => {
    const client = await setup.client(gateway);
    client.send(`${HEAD}content-length: 13\r\n\r\n{"model":"m"}${expecting}{"model":"m"}`);
    for (let at = 0; at < 2; at++) {
      const { status, body } = await client.answer();
      expect([status, body.toString()]).toEqual([200, "{}"]);
    }
    expect(client.received.toString()).toBe("");
  });

  it("B033: whose body came unasked leaves the connection open for the next one", async () => {
    const slow = await setup.engine();
    const client = await setup.client(await setup.before({ a: slow }));
    client.send(`${HEAD}content-length: 13\r\n\r\n{"model":"m"}${expecting}`);
    const first = await slow.next();
    client.send('{"model":"m"}');
    const second = await slow.next();
    first.socket.write(jsonAnswer('{"first":1}'));
    second.socket.write(jsonAnswer('{"second":2}'));
    expect((await client.answer()).body.toString()).toBe('{"first":1}');
    const answer = await client.answer();
    expect([answer.body.toString(), headerIn(answer, "connection")]).toEqual(['{"second":2}', "keep-alive"]);
    client.post(CHAT, PLAIN_BODY);
    (await slow.next()).socket.write(jsonAnswer('{"third":3}'));
    expect((await client.answer()).body.toString()).toBe('{"third":3}');
  });

  it("B033: has the whole time for its body from when it is asked for it, and no longer", async () => {
    const clock = new ManualClock();
    const slow = await setup.engine();
    const own = await setup.before({ a: slow }, "gateway: { limits: { bodyMs: 1000 } }", { clock });
    const client = await setup.client(own);
    client.send(`${HEAD}content-length: 13\r\n\r\n{"model":"m"}${expecting}`);
    const first = await slow.next();
    clock.advance(1500);
    first.socket.write(jsonAnswer('{"first":1}'));
    expect((await client.answer()).body.toString()).toBe('{"first":1}');
    expect((await client.answer()).status).toBe(100);
    clock.advance(900);
    client.send(`{"model":"m"}${expecting}`);
    (await slow.next()).socket.write(jsonAnswer('{"second":2}'));
    expect((await client.answer()).body.toString()).toBe('{"second":2}');
    expect((await client.answer()).status).toBe(100);
    clock.advance(1100);
    const refused = await client.answer();
    expect([refused.status, JSON.parse(refused.body.toString()).error.code]).toEqual([408, "request_timeout"]);
    // What it still sends is read for a moment.
    clock.advance(1000);
    await client.closed;
  });

  it("is answered in its turn where the body waits for it", async () => {
    const slow = await setup.engine();
    const client = await setup.client(await setup.before({ a: slow }));
    client.send(`${HEAD}content-length: 13\r\n\r\n{"model":"m"}${expecting}`);
    (await slow.next()).socket.write(jsonAnswer('{"first":1}'));
    expect((await client.answer()).body.toString()).toBe('{"first":1}');
    expect((await client.answer()).status).toBe(100);
    client.send('{"model":"m"}');
    (await slow.next()).socket.write(jsonAnswer('{"second":2}'));
    expect((await client.answer()).body.toString()).toBe('{"second":2}');
  });
});
