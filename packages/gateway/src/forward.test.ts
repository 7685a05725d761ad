import { createHash } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { seededRandom } from "@guidevane/core";
import { afterEach, describe, expect, it } from "vitest";
import { fleetOf } from "./testing/fleet.ts";
import { headerIn } from "./testing/raw-client.ts";
import { chunked, type EngineRequestSeen, jsonAnswer, LAST_CHUNK, STREAM_HEAD } from "./testing/scripted-engine.ts";
import { CHAT, createSetup, eventually, metric, PLAIN_BODY, STREAM_BODY } from "./testing/setup.ts";

const setup = createSetup(afterEach);

const good = ({ socket }: EngineRequestSeen): void => {
  socket.write(jsonAnswer('{"ok":1}'));
};

describe("forwarding", () => {
  it("passes a body and its answer on byte for byte", async () => {
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

  it("passes streams on byte for byte, wherever their chunks are cut", async () => {
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

  it("has no queue of its own: an engine has all requests at once, and none is left behind", async () => {
    const held: EngineRequestSeen[] = [];
    const engine = await setup.engine((request) => void held.push(request));
    const gateway = await setup.before({ a: engine }, "classes: { m: { model: m, work: 0.01 } }");
    const clients = await Promise.all(Array.from({ length: 200 }, () => setup.client(gateway)));
    for (const [i, client] of clients.entries())
      client.post(CHAT, `{"model":"m","messages":[{"role":"user","content":"${i}"}]}`);
    await eventually(() => held.length === 200);
    expect(engine.connections).toBe(200);
    await eventually(async () => (await metric(gateway, 'guidevane_in_flight{engine="a"}')) === 200);
    // Each gets its own answer back: what it asked.
    for (const { socket, body } of held) socket.write(jsonAnswer(body.toString()));
    for (const [i, client] of clients.entries())
      expect((await client.answer()).body.toString()).toContain(`"content":"${i}"`);
    await eventually(async () => (await metric(gateway, 'guidevane_in_flight{engine="a"}')) === 0);
  });

  it("asks an engine for no more while its client reads nothing", async () => {
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

  it("lets a compressed body through as it is and reads its fields", async () => {
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

  it("cuts an answer that ends by close without its terminator, and ends one that has it", async () => {
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

  it("passes an error event on, and doesn't take the [DONE] after it for success", async () => {
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

  it("passes an answer on whose status text has characters that must not be passed on", async () => {
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
  ])("answers 502 where an engine answers with %s", async (_what, bytes) => {
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
  ])("doesn't repeat a request that was answered with %s", async (_what, bytes) => {
    const engine = await setup.engine(({ socket }) => socket.write(bytes));
    const gateway = await setup.before({ a: engine });
    const client = await setup.client(gateway);
    client.post(CHAT, PLAIN_BODY);
    expect((await client.answer()).status).toBe(502);
    expect(engine.requests.length).toBe(1);
  });

  it("doesn't use a connection again whose engine answered before it had read the body", async () => {
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

  it("takes no compressed stream for one without its end", async () => {
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

  it("doesn't send a client around the gateway where an engine redirects it", async () => {
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

  it("cuts a plain answer that is shorter than it said", async () => {
    const engine = await setup.engine(({ socket }) => socket.end(jsonAnswer('{"ok":1}').slice(0, -3)));
    const gateway = await setup.before({ a: engine });
    const client = await setup.client(gateway);
    client.post(CHAT, PLAIN_BODY);
    await client.closed;
    expect(client.received.toString()).toMatch(/\{"ok"$/);
    expect(await metric(gateway, 'guidevane_requests_total{class="m",outcome="fault"}')).toBe(1);
  });

  it("drops informational answers, and gives up an engine that sends nothing else", async () => {
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

describe("headers", () => {
  it("go to the engine in order, without those of the connection, the gateway and the client's credentials", async () => {
    const engine = await setup.engine(good);
    const client = await setup.client(await setup.before({ a: engine }));
    client.send(
      [
        `POST ${CHAT}?key=secret&a=1&api_key=secret&API%5Fkey=x HTTP/1.1`,
        "Host: client.example",
        "X-First: 1",
        "Connection: keep-alive, X-Hop",
        "X-Hop: gone",
        "Keep-Alive: timeout=5",
        "TE: trailers",
        "Proxy-Authorization: p",
        "Forwarded: for=1.2.3.4",
        "X-Forwarded-For: 1.2.3.4",
        "X-Real-IP: 1.2.3.4",
        "Cookie: c=1",
        "X-Guidevane-Class: m",
        "Authorization: Bearer client",
        "Api-Key: k",
        "X-Api-Key: k",
        "X-Goog-Api-Key: k",
        "Content-Type: application/json",
        "traceparent: 00-1-1-01",
        "Tracestate: t",
        "baggage: b",
        "X-Twice: 1",
        "x-twice: 2",
        "x-request-id: mine-1.2:3",
        `Content-Length: ${Buffer.byteLength(PLAIN_BODY)}`,
        "",
        PLAIN_BODY,
      ].join("\r\n"),
    );
    const got = await client.answer();
    expect(headerIn(got, "x-request-id")).toBe("mine-1.2:3");
    const { requestLine, headers } = engine.requests[0]!;
    expect(requestLine).toBe(`POST ${CHAT}?a=1 HTTP/1.1`);
    expect(headers).toEqual([
      ["host", new URL(engine.url).host],
      ["connection", "keep-alive"],
      ["X-First", "1"],
      ["Content-Type", "application/json"],
      ["traceparent", "00-1-1-01"],
      ["Tracestate", "t"],
      ["baggage", "b"],
      ["X-Twice", "1"],
      ["x-twice", "2"],
      ["x-request-id", "mine-1.2:3"],
      ["content-length", String(Buffer.byteLength(PLAIN_BODY))],
    ]);
  });

  it("come back in order, without those of the connection, with the gateway's own", async () => {
    const engine = await setup.engine(({ socket }) =>
      socket.write(
        jsonAnswer(
          "{}",
          200,
          "X-B: 1\r\nSet-Cookie: a\r\nset-cookie: b\r\nConnection: x-hop\r\nX-Hop: 1\r\nProxy-Authenticate: p\r\nX-Guidevane-Engine: lie\r\nX-Request-Id: theirs\r\n",
        ),
      ),
    );
    const gateway = await setup.before({ a: engine });
    const client = await setup.client(gateway);
    client.post(CHAT, PLAIN_BODY, { "x-request-id": "not a plain id" });
    const got = await client.answer();
    const id = headerIn(got, "x-request-id") ?? "";
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    // RFC 9562: the first 48 bits are the milliseconds of now.
    expect(Math.abs(Number.parseInt(id.replaceAll("-", "").slice(0, 12), 16) - Date.now())).toBeLessThan(60_000);
    expect(got.headers.filter(([name]) => !/^(connection|keep-alive)$/i.test(name))).toEqual([
      ["content-type", "application/json"],
      ["X-B", "1"],
      ["Set-Cookie", "a"],
      ["set-cookie", "b"],
      ["content-length", "2"],
      ["x-request-id", id],
      ["x-guidevane-engine", "a"],
      ["x-guidevane-snapshot", "0"],
      ["x-guidevane-reason", "bootstrap"],
      ["x-guidevane-key-source", "prompt"],
    ]);
    expect(JSON.stringify(got.headers)).not.toContain(String(engine.port));
  });

  it("bring the engine's own credentials, from the gateway's own fleet file", async () => {
    const engine = await setup.engine(good);
    const fleet = await fleetOf({ a: engine.url }, "", ", auth: { keyEnv: ENGINE_KEY }");
    const gateway = await setup.gateway(fleet, {
      secrets: { env: (name) => (name === "ENGINE_KEY" ? "sesame\n" : undefined), file: () => "" },
    });
    const client = await setup.client(gateway);
    client.post(CHAT, PLAIN_BODY, { authorization: "Bearer client" });
    await client.answer();
    const sent = engine.requests[0]?.headers.filter(([name]) => name.toLowerCase() === "authorization");
    expect(sent).toEqual([["authorization", "Bearer sesame"]]);
  });

  it("bring the client's credentials to an engine that says passthrough", async () => {
    const engine = await setup.engine(good);
    const gateway = await setup.gateway(await fleetOf({ a: engine.url }, "", ", auth: { passthrough: true }"));
    const client = await setup.client(gateway);
    client.post(`${CHAT}?key=mine`, PLAIN_BODY, { authorization: "Bearer client" });
    await client.answer();
    expect(engine.requests[0]?.requestLine).toBe(`POST ${CHAT}?key=mine HTTP/1.1`);
    expect(engine.requests[0]?.headers).toContainEqual(["authorization", "Bearer client"]);
  });

  it("name the session: the same one goes to the same engine, by the first header that has text", async () => {
    const [a, b] = [await setup.engine(good), await setup.engine(good)];
    const gateway = await setup.before({ a, b }, "gateway: { sessionHeaders: [X-Session-Id, x-smg-routing-key] }");
    const client = await setup.client(gateway);
    const seen = new Set<string>();
    for (let i = 0; i < 10; i++) {
      client.post(CHAT, `{"model":"m","messages":[{"role":"user","content":"${i}"}]}`, {
        "x-session-id": i % 2 === 0 ? "" : "  s7 ",
        "X-SMG-Routing-Key": "s7",
      });
      const got = await client.answer();
      expect(headerIn(got, "x-guidevane-key-source")).toBe("header");
      seen.add(headerIn(got, "x-guidevane-engine") ?? "");
    }
    expect(seen.size).toBe(1);
  });
});
