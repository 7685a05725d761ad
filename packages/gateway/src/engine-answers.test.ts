import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, it } from "vitest";
import { headerIn } from "./testing/raw-client.ts";
import { chunked, jsonAnswer, LAST_CHUNK, STREAM_HEAD } from "./testing/scripted-engine.ts";
import { CHAT, createSetup, metric, PLAIN_BODY, STREAM_BODY } from "./testing/setup.ts";

const setup = createSetup(afterEach);

describe("an engine's answer", () => {
  it("B046: is cut where it ends by close without its terminator, and ended well with it", async () => {
    const head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    const engine = await setup.engine();
    const gateway = await setup.before({ a: engine });
    const cut = await setup.client(gateway);
    cut.post(CHAT, STREAM_BODY);
    (await engine.next()).socket.end(`${head}data: 1\n\n`);
    await cut.closed;
    expect(cut.received.toString()).toContain("data: 1");
    expect(cut.received.includes(`\r\n${LAST_CHUNK}`)).toBe(false);
    const whole = await setup.client(gateway);
    whole.post(CHAT, STREAM_BODY);
    (await engine.next()).socket.end(`${head}data: 1\n\ndata: [DONE]\n\n`);
    expect((await whole.answer()).body.toString()).toBe("data: 1\n\ndata: [DONE]\n\n");
    expect(await metric(gateway, 'guidevane_attempts_total{engine="a",outcome="fault"}')).toBe(1);
    expect(await metric(gateway, 'guidevane_attempts_total{engine="a",outcome="success"}')).toBe(1);
  });

  it("with an error event is passed on, and the [DONE] after it is not taken for success", async () => {
    const body = 'data: {"error":{"message":"Engine core died","code":500}}\n\ndata: [DONE]\n\n';
    const engine = await setup.engine(({ socket }) =>
      socket.write(Buffer.concat([Buffer.from(STREAM_HEAD), chunked(body), Buffer.from(LAST_CHUNK)])),
    );
    const gateway = await setup.before({ a: engine });
    const client = await setup.client(gateway);
    client.post(CHAT, STREAM_BODY);
    expect((await client.answer()).body.toString()).toBe(body);
    expect(await metric(gateway, 'guidevane_requests_total{class="m",outcome="fault"}')).toBe(1);
  });

  it("is passed on without the characters of its status text that must not be", async () => {
    const engine = await setup.engine(({ socket }) =>
      socket.write(jsonAnswer("{}").replace("Status", "O\u0001K\u007f")),
    );
    const client = await setup.client(await setup.before({ a: engine }));
    client.post(CHAT, PLAIN_BODY);
    const got = await client.answer();
    expect([got.status, got.statusText, got.body.toString()]).toEqual([200, "OK", "{}"]);
  });

  it.each([
    ["no HTTP", "SSH-2.0-OpenSSH_9.6\r\n"],
    ["two lengths", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}"],
    ["a head without end", `HTTP/1.1 200 OK\r\nx: ${"y".repeat(100_000)}`],
    ["a switch of protocols", "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n"],
  ])("B031: is a 502 where it is %s", async (_what, bytes) => {
    const engine = await setup.engine(({ socket }) => socket.write(bytes));
    const gateway = await setup.before({ a: engine });
    const client = await setup.client(gateway);
    client.post(CHAT, PLAIN_BODY);
    expect((await client.answer()).status).toBe(502);
    expect(await metric(gateway, 'guidevane_requests_total{class="m",outcome="fault"}')).toBe(1);
  });

  it.each([
    ["no HTTP", "SSH-2.0-OpenSSH_9.6\r\n"],
    ["both framings", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n2\r\n{}\r\n0\r\n\r\n"],
    ["a folded header", "HTTP/1.1 200 OK\r\nx: a\r\n b\r\ncontent-length: 2\r\n\r\n{}"],
    ["a status of four digits", "HTTP/1.1 1000 X\r\ncontent-length: 2\r\n\r\n{}"],
  ])("is not asked for again where it was %s", async (_what, bytes) => {
    const engine = await setup.engine(({ socket }) => socket.write(bytes));
    const gateway = await setup.before({ a: engine });
    const client = await setup.client(gateway);
    client.post(CHAT, PLAIN_BODY);
    expect((await client.answer()).status).toBe(502);
    expect(engine.requests.length).toBe(1);
  });

  it("that comes before the body was read ends its connection", async () => {
    let connections = 0;
    const server = createServer((socket) => {
      connections += 1;
      socket.on("error", () => {});
      // It reads no more after the head, as a server that refuses by the length does.
      socket.once("data", () => socket.pause().write(jsonAnswer("{}", 413)));
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    setup.cleanups.push(() => server.close());
    const gateway = await setup.before({ a: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
    const client = await setup.client(gateway);
    for (const round of [1, 2]) {
      const before = connections;
      client.post(CHAT, JSON.stringify({ model: "m", messages: [], x: "y".repeat(16_000_000), round }));
      expect((await client.answer()).status).toBe(413);
      expect(connections - before).toBeGreaterThan(0);
    }
  });

  it("as a compressed stream is not taken for one without its end", async () => {
    const bytes = gzipSync('data: {"choices":[]}\n\ndata: [DONE]\n\n');
    const engine = await setup.engine(({ socket }) =>
      socket.write(
        Buffer.concat([
          Buffer.from(STREAM_HEAD.replace("\r\n\r\n", "\r\ncontent-encoding: gzip\r\n\r\n")),
          chunked(bytes),
          Buffer.from(LAST_CHUNK),
        ]),
      ),
    );
    const gateway = await setup.before({ a: engine });
    const client = await setup.client(gateway);
    client.post(CHAT, STREAM_BODY, { "accept-encoding": "gzip" });
    expect((await client.answer()).body.equals(bytes)).toBe(true);
    expect(await metric(gateway, 'guidevane_requests_total{class="m",outcome="success"}')).toBe(1);
  });

  it("that redirects doesn't send a client around the gateway", async () => {
    const moved = (to: string) => jsonAnswer("{}", 307, `location: ${to}\r\nalt-svc: h2=":8000"\r\n`);
    const engine = await setup.engine(({ socket, body }) =>
      socket.write(moved(body.includes("far") ? "http://10.1.0.4:8000/v1/chat" : "/v1/chat")),
    );
    const gateway = await setup.before({ a: engine });
    const client = await setup.client(gateway);
    for (const [word, location] of [
      ["far", undefined],
      ["near", "/v1/chat"],
    ] as const) {
      client.post(CHAT, JSON.stringify({ model: "m", messages: [], word }));
      const got = await client.answer();
      expect([got.status, headerIn(got, "location"), headerIn(got, "alt-svc")]).toEqual([307, location, undefined]);
    }
    expect(await metric(gateway, 'guidevane_requests_total{class="m",outcome="fault"}')).toBe(2);
  });

  it("that is shorter than it said is cut", async () => {
    const engine = await setup.engine(({ socket }) => socket.end(jsonAnswer('{"ok":1}').slice(0, -3)));
    const gateway = await setup.before({ a: engine });
    const client = await setup.client(gateway);
    client.post(CHAT, PLAIN_BODY);
    await client.closed;
    expect(client.received.toString()).toMatch(/\{"ok"$/);
    expect(await metric(gateway, 'guidevane_requests_total{class="m",outcome="fault"}')).toBe(1);
  });

  it("may have informational ones before it, which are dropped; more than 32 end the attempt", async () => {
    const early = "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n";
    const engine = await setup.engine(({ socket, body }) =>
      socket.write(body.includes("many") ? early.repeat(40) : early.repeat(3) + jsonAnswer('{"ok":1}')),
    );
    const client = await setup.client(await setup.before({ a: engine }));
    client.post(CHAT, PLAIN_BODY);
    const got = await client.answer();
    expect([got.status, headerIn(got, "link")]).toEqual([200, undefined]);
    client.post(CHAT, '{"model":"m","messages":[],"many":1}');
    expect((await client.answer()).status).toBe(502);
  });
});
