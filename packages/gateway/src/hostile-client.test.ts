import { randomBytes } from "node:crypto";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { Gateway } from "./gateway.ts";
import { headerIn, RawClient } from "./testing/raw-client.ts";
import { chunked, jsonAnswer, LAST_CHUNK, type ScriptedEngine } from "./testing/scripted-engine.ts";
import { CHAT, createSetup, metric } from "./testing/setup.ts";

/** What a client can do to be read in two ways, to cost more than it sends, or to reach what it must not. */

const setup = createSetup(afterAll);
const HEAD = `POST ${CHAT} HTTP/1.1\r\nhost: x\r\n`;
/** A request that must never be seen as one of its own: it stands where a body might end earlier for somebody else. */
const HIDDEN = `POST ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-length: 13\r\n\r\n{"model":"m"}`;

let engine: ScriptedEngine;
let gateway: Gateway;

beforeAll(async () => {
  engine = await setup.engine(({ socket }) => socket.write(jsonAnswer("{}")));
  gateway = await setup.before({ a: engine });
});

async function connect(): Promise<RawClient> {
  const client = await RawClient.connect(gateway.url);
  setup.cleanups.push(() => client.close());
  return client;
}

describe("a request that could be read in two ways", () => {
  const chunkedHead = `${HEAD}transfer-encoding: chunked\r\n\r\n`;
  it.each([
    ["a length and chunks", `${HEAD}content-length: 6\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n${HIDDEN}`],
    ["chunks and a length", `${HEAD}transfer-encoding: chunked\r\ncontent-length: 6\r\n\r\n0\r\n\r\n${HIDDEN}`],
    ["two lengths", `${HEAD}content-length: 2\r\ncontent-length: 100\r\n\r\n{}${HIDDEN}`],
    ["one length twice", `${HEAD}content-length: 2\r\ncontent-length: 2\r\n\r\n{}`],
    ["a list of lengths", `${HEAD}content-length: 2, 2\r\n\r\n{}`],
    ["a signed length", `${HEAD}content-length: +2\r\n\r\n{}`],
    ["a negative length", `${HEAD}content-length: -2\r\n\r\n{}`],
    ["a hexadecimal length", `${HEAD}content-length: 0x2\r\n\r\n{}`],
    ["a length of two numbers", `${HEAD}content-length: 2 2\r\n\r\n{}`],
    ["an empty length", `${HEAD}content-length:\r\n\r\n{}`],
    ["a length beyond all numbers", `${HEAD}content-length: 99999999999999999999999\r\n\r\n{}`],
    ["a space before the colon of a length", `${HEAD}content-length : 2\r\n\r\n{}`],
    ["a space before the colon of a coding", `${HEAD}transfer-encoding : chunked\r\n\r\n0\r\n\r\n`],
    ["a control character before a coding", `${HEAD}transfer-encoding: \x0bchunked\r\n\r\n0\r\n\r\n`],
    ["a folded coding", `${HEAD}transfer-encoding:\r\n chunked\r\n\r\n0\r\n\r\n`],
    ["two codings", `${HEAD}transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`],
    ["a coding after chunks", `${HEAD}transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n`],
    ["a coding before chunks", `${HEAD}transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n`],
    ["a coding of no name", `${HEAD}transfer-encoding: xchunked\r\n\r\n0\r\n\r\n`],
    ["chunks in HTTP/1.0", `POST ${CHAT} HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`],
    ["a folded header", `${HEAD}x-a: 1\r\n content-length: 100\r\ncontent-length: 2\r\n\r\n{}`],
    ["line feeds alone", `POST ${CHAT} HTTP/1.1\nhost: x\ncontent-length: 2\n\n{}`],
    ["a line feed alone after a header", `${HEAD}x-a: 1\ncontent-length: 2\r\n\r\n{}`],
    ["a carriage return alone", `${HEAD}x-a: 1\rcontent-length: 2\r\n\r\n{}`],
    ["a NUL in a header", `${HEAD}x-a: 1\0\r\ncontent-length: 2\r\n\r\n{}`],
    ["a header without a name", `${HEAD}: x\r\ncontent-length: 2\r\n\r\n{}`],
    ["a name with a space", `${HEAD}x a: x\r\ncontent-length: 2\r\n\r\n{}`],
    ["a chunk's size with a prefix", `${chunkedHead}0x2\r\n{}\r\n0\r\n\r\n`],
    ["a chunk's size with a space", `${chunkedHead}2 \r\n{}\r\n0\r\n\r\n`],
    ["a chunk's size with a sign", `${chunkedHead}+2\r\n{}\r\n0\r\n\r\n`],
    ["a chunk's size beyond all numbers", `${chunkedHead}fffffffffffffffff2\r\n{}\r\n0\r\n\r\n`],
    ["a chunk without a size", `${chunkedHead}\r\n{}\r\n0\r\n\r\n`],
    ["a chunk's line ended by a line feed", `${chunkedHead}2\n{}\r\n0\r\n\r\n`],
    ["a chunk ended by a line feed", `${chunkedHead}2\r\n{}\n0\r\n\r\n`],
    ["a chunk longer than its size", `${chunkedHead}2\r\n{}XX\r\n0\r\n\r\n`],
    ["a line feed in a chunk's extension", `${chunkedHead}2;a\nb\r\n{}\r\n0\r\n\r\n`],
    ["a carriage return in a chunk's extension", `${chunkedHead}2;a\rb\r\n{}\r\n0\r\n\r\n`],
    ["a length among the trailers", `${chunkedHead}2\r\n{}\r\n0\r\ncontent-length: 5\r\n\r\n`],
    ["no host", `POST ${CHAT} HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}`],
    ["two hosts", `${HEAD}host: y\r\ncontent-length: 2\r\n\r\n{}`],
    ["a host with a path", `POST ${CHAT} HTTP/1.1\r\nhost: a/b\r\ncontent-length: 2\r\n\r\n{}`],
    ["a host with a user", `POST ${CHAT} HTTP/1.1\r\nhost: a@b\r\ncontent-length: 2\r\n\r\n{}`],
    ["another server's URL", `POST http://b${CHAT} HTTP/1.1\r\nhost: b\r\ncontent-length: 2\r\n\r\n{}`],
    ["a fragment", `POST ${CHAT}#x HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}`],
    ["a fragment in the query", `POST ${CHAT}?a#b HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}`],
    ["a path with a space", `POST ${CHAT} x HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}`],
    [
      "a path with raw bytes",
      Buffer.from(`POST ${CHAT}\xff HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}`, "latin1"),
    ],
    ["a tab after the method", `POST\t${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}`],
    ["a method in small letters", `post ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}`],
    ["a method of no name", `FOO ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}`],
    ["no version", `POST ${CHAT}\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}`],
    ["a version that there is not", `POST ${CHAT} HTTP/1.2\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}`],
    ["HTTP/2's preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    ["the target *", "OPTIONS * HTTP/1.1\r\nhost: x\r\n\r\n"],
    ["TLS", Buffer.from("160301020001000" + "1fc0303", "hex")],
  ])("B177: by %s is refused and its connection closed, and no engine sees a thing of it", async (_what, bytes) => {
    const client = await connect();
    client.send(bytes);
    const answer = await client.answer();
    expect([400, 405, 505]).toContain(answer.status);
    expect(JSON.parse(answer.body.toString())).toMatchObject({ error: { code: expect.any(String) } });
    client.socket.end();
    await client.closed;
    expect(client.received.toString()).toBe("");
    expect(engine.requests).toEqual([]);
  });

  it.each(["x", "X.example:8080", "a_b.local", "10.0.0.1:1", "[::1]:8080", "[fe80::1%25eth0]", "", "x:"])(
    "but not by the host %j is served",
    async (host) => {
      const client = await connect();
      client.send(`GET /v1/models HTTP/1.1\r\nhost: ${host}\r\n\r\n`);
      expect((await client.answer()).status).toBe(200);
    },
  );

  it.each([
    ["empty lines before it", `\r\n\r\n${HEAD}content-length: 13\r\n\r\n{"model":"m"}`],
    ["chunks with extensions", `${HEAD}transfer-encoding: chunked\r\n\r\nd;a=b\r\n{"model":"m"}\r\n0\r\n\r\n`],
    ["trailers", `${HEAD}transfer-encoding: chunked\r\ntrailer: x-t\r\n\r\nd\r\n{"model":"m"}\r\n0\r\nx-t: 1\r\n\r\n`],
    [
      "an offer of HTTP/2",
      `${HEAD}connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\ncontent-length: 13\r\n\r\n{"model":"m"}`,
    ],
    [
      "headers named by Connection",
      `${HEAD}connection: keep-alive, X-Drop-Me\r\nx-drop-me: 1\r\ncontent-length: 13\r\n\r\n{"model":"m"}`,
    ],
    [
      "a connection header that names the length",
      `${HEAD}connection: content-length\r\ncontent-length: 13\r\n\r\n{"model":"m"}`,
    ],
  ])("but not by %s goes to an engine once, with a length and nothing of the connection's", async (_what, bytes) => {
    const before = engine.requests.length;
    const client = await connect();
    client.send(bytes);
    expect((await client.answer()).status).toBe(200);
    const [seen, ...others] = engine.requests.slice(before);
    expect(others).toEqual([]);
    expect(seen!.body.toString()).toBe('{"model":"m"}');
    const names = seen!.headers.map(([name]) => name.toLowerCase());
    expect(names.filter((name) => name === "content-length")).toHaveLength(1);
    for (const name of ["transfer-encoding", "trailer", "x-t", "upgrade", "http2-settings", "x-drop-me"])
      expect(names).not.toContain(name);
  });
});

describe("a client that costs more than it sends", () => {
  it("by headers without end is refused at the limit", async () => {
    const client = await connect();
    client.socket.on("error", () => {});
    client.send(`${HEAD}${"a:\r\n".repeat(100_000)}\r\n`);
    expect((await client.answer()).status).toBe(431);
    expect(await metric(gateway, 'guidevane_in_flight{engine="a"}')).toBe(0);
  });

  it("by a head that never ends, or a connection without one, is given up after its time", async () => {
    const own = await setup.before({ a: engine }, "gateway: { limits: { headMs: 100 } }");
    const slow = await setup.client(own);
    const silent = await setup.client(own);
    slow.send(`${HEAD}x-a: `);
    expect((await slow.answer()).status).toBe(408);
    await Promise.all([slow.closed, silent.closed]);
  });

  it("by a body of one-byte chunks is served, and a thousand of them are never held apart", async () => {
    const joined = vi.spyOn(Buffer, "concat");
    const client = await connect();
    const body = `{"model":"m","x":"${"y".repeat(20_000)}"}`;
    client.send(`${HEAD}transfer-encoding: chunked\r\n\r\n`);
    client.send(`${[...body].map((byte) => `1\r\n${byte}\r\n`).join("")}${LAST_CHUNK}`);
    expect((await client.answer()).status).toBe(200);
    expect(engine.requests.at(-1)!.body.toString()).toBe(body);
    const longest = Math.max(...joined.mock.calls.map(([list]) => list.length));
    expect(longest).toBeGreaterThan(100);
    expect(longest).toBeLessThan(1000);
    joined.mockRestore();
  });

  it("by large bodies, plain, in chunks or compressed, is served byte for byte", async () => {
    const text = Buffer.from(`{"model":"m","x":"${randomBytes(1_500_000).toString("base64")}"}`);
    const zipped = gzipSync(text, { level: 1 });
    const frames: readonly [Buffer, string][] = [
      [text, `content-length: ${text.length}\r\n\r\n`],
      [zipped, `content-encoding: gzip\r\ncontent-length: ${zipped.length}\r\n\r\n`],
      [text, "transfer-encoding: chunked\r\n\r\n"],
    ];
    await Promise.all(
      frames.map(async ([bytes, head]) => {
        const client = await connect();
        client.send(`${HEAD}${head}`);
        client.send(head.includes("chunked") ? Buffer.concat([chunked(bytes), Buffer.from(LAST_CHUNK)]) : bytes);
        expect((await client.answer()).status).toBe(200);
      }),
    );
    const seen = engine.requests.slice(-3).map(({ body }) => body);
    for (const expected of [text, text, zipped]) {
      const at = seen.findIndex((body) => body.equals(expected));
      expect(at).not.toBe(-1);
      seen.splice(at, 1);
    }
  });

  it.each([
    ["deep lists", `{"model":"m","x":${"[".repeat(100_000)}${"]".repeat(100_000)}}`],
    ["lists that never end", `{"model":"m","x":${"[".repeat(100_000)}`],
    ["deep objects", `{"model":"m","x":${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}}`],
    ["a mark of byte order", '\ufeff{"model":"m"}'],
    ["an object that never ends", '{"model":"m"'],
    ["a list", "[]"],
    ["a word", "null"],
    ["a NUL", '{"model":"m"}\0'],
    ["two objects", '{"model":"m"}{"model":"m"}'],
  ])("by %s is refused as a mistake in its JSON", async (_what, body) => {
    const before = engine.requests.length;
    const client = await connect();
    client.post(CHAT, body);
    const answer = await client.answer();
    expect([answer.status, JSON.parse(answer.body.toString()).error.code]).toEqual([400, "invalid_json"]);
    expect(engine.requests.length).toBe(before);
    expect(headerIn(answer, "connection")).not.toBe("close");
  });
});
