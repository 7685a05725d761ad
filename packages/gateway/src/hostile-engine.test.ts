import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Gateway } from "./gateway.ts";
import { headerIn } from "./testing/raw-client.ts";
import { chunked, jsonAnswer, type ScriptedEngine, STREAM_HEAD } from "./testing/scripted-engine.ts";
import { CHAT, createSetup, eventually, metric, PLAIN_BODY, STREAM_BODY } from "./testing/setup.ts";

/** Engines whose answers could be read in two ways: what was said is dropped, and nothing of it reaches the next answer. */

const setup = createSetup(afterAll);
const BODY = '{"id":"of-this-one"}';
const LENGTH = `content-length: ${BODY.length}\r\n`;
const OK = "HTTP/1.1 200 OK\r\n";
const CHUNKS = `${OK}transfer-encoding: chunked\r\n\r\n`;
const CONTINUE = "HTTP/1.1 100 Continue\r\n\r\n";
const CHUNK = `${BODY.length.toString(16)}\r\n${BODY}`;

/** What the engine writes to the next request; "" = what is right. */
let script: string | Buffer = "";
let engine: ScriptedEngine;
let gateway: Gateway;

beforeAll(async () => {
  engine = await setup.engine(({ socket }) => socket.write(script === "" ? jsonAnswer('{"id":"next"}') : script));
  gateway = await setup.before({ a: engine }, "gateway: { retry: { attempts: 1 } }");
});

/** One request that the engine answers by `bytes`, on a connection of its own; null = the connection broke in the answer. */
async function answerTo(bytes: string | Buffer): Promise<{ status: number; body: string } | null> {
  script = bytes;
  const client = await setup.client(gateway);
  client.post(CHAT, PLAIN_BODY);
  try {
    const { status, body } = await client.answer();
    return { status, body: body.toString() };
  } catch {
    return null;
  } finally {
    client.close();
    script = "";
  }
}

/** The next answer is its own, and nobody waits for anything any more. */
async function nextIsRight(): Promise<void> {
  expect(await answerTo("")).toEqual({ status: 200, body: '{"id":"next"}' });
  await eventually(async () => (await metric(gateway, 'guidevane_in_flight{engine="a"}')) === 0);
}

describe("an engine's head that could be read in two ways", () => {
  it.each([
    ["a length and chunks", `${OK}${LENGTH}transfer-encoding: chunked\r\n\r\n${CHUNK}\r\n0\r\n\r\n`],
    ["two lengths", `${OK}${LENGTH}content-length: 5\r\n\r\n${BODY}`],
    ["one length twice", `${OK}${LENGTH}${LENGTH}\r\n${BODY}`],
    ["a list of lengths", `${OK}content-length: 20, 20\r\n\r\n${BODY}`],
    ["a signed length", `${OK}content-length: +20\r\n\r\n${BODY}`],
    ["a negative length", `${OK}content-length: -1\r\n\r\n${BODY}`],
    ["a length beyond all numbers", `${OK}content-length: 99999999999999999999999\r\n\r\n${BODY}`],
    ["a space before the colon of a length", `${OK}content-length : 20\r\n\r\n${BODY}`],
    ["a folded header", `${OK}x-a: 1\r\n 2\r\n${LENGTH}\r\n${BODY}`],
    ["a NUL in a header", `${OK}x-a: 1\0\r\n${LENGTH}\r\n${BODY}`],
    ["line feeds alone", `HTTP/1.1 200 OK\ncontent-length: 20\n\n${BODY}`],
    ["a carriage return in its reason", `HTTP/1.1 200 OK\rset-cookie: x\r\n${LENGTH}\r\n${BODY}`],
    ["no head at all", BODY],
    ["bytes of no meaning", Buffer.from([0, 1, 2, 0xff, 0xfe, 13, 10, 13, 10])],
    ["a status of two digits", `HTTP/1.1 20 OK\r\n${LENGTH}\r\n${BODY}`],
    ["another protocol", `HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n${BODY}`],
    ["a head of 100 KB", `${OK}x-a: ${"y".repeat(100_000)}\r\n${LENGTH}\r\n${BODY}`],
  ])("by %s is answered 502, and the next answer is its own", async (_what, bytes) => {
    const answer = await answerTo(bytes);
    expect(answer?.status).toBe(502);
    expect(JSON.parse(answer!.body)).toMatchObject({ error: { code: "engine_unreachable" } });
    await nextIsRight();
  });
});

describe("an engine's body that breaks off its frame", () => {
  it.each([
    ["a chunk's size with a prefix", `${CHUNKS}0x14\r\n${BODY}\r\n0\r\n\r\n`],
    ["a chunk's size of no number", `${CHUNKS}zz\r\n${BODY}\r\n0\r\n\r\n`],
    ["a chunk's line ended by a line feed", `${CHUNKS}14\n${BODY}\r\n0\r\n\r\n`],
    ["a chunk longer than its size", `${CHUNKS}${CHUNK}XX\r\n0\r\n\r\n`],
    ["a chunk's size beyond all numbers", `${CHUNKS}fffffffffffffffff\r\n${BODY}`],
  ])("B031: by %s is cut for the client too, and the next answer is its own", async (_what, bytes) => {
    expect(await answerTo(bytes)).toBeNull();
    await nextIsRight();
  });

  it("B031: in the middle of a stream cuts it where it stands", async () => {
    script = Buffer.concat([Buffer.from(STREAM_HEAD), chunked("data: {}\n\n"), Buffer.from("zz\r\ndata: EVIL\r\n")]);
    const client = await setup.client(gateway);
    client.post(CHAT, STREAM_BODY);
    await client.closed;
    script = "";
    expect(client.received.toString()).toContain("data: {}\n\n");
    expect(client.received.toString()).not.toContain("EVIL");
    expect(client.received.toString()).not.toMatch(/\r\n0\r\n\r\n$/);
    await nextIsRight();
  });
});

describe("bytes after an engine's answer", () => {
  const SECOND = `${OK}content-length: 4\r\n\r\nEVIL`;
  it.each([
    ["a second answer after a length", `${OK}${LENGTH}\r\n${BODY}${SECOND}`],
    ["a second answer after chunks", `${CHUNKS}${CHUNK}\r\n0\r\n\r\n${SECOND}`],
    ["a second answer after trailers", `${CHUNKS}${CHUNK}\r\n0\r\nx-t: 1\r\n\r\n${SECOND}`],
    ["a second answer after 204", `HTTP/1.1 204 No Content\r\n\r\n${SECOND}`],
    ["a body after 304", `HTTP/1.1 304 Not Modified\r\n${LENGTH}\r\n${BODY}`],
    ["bytes of no meaning", `${OK}${LENGTH}\r\n${BODY}EVILEVIL`],
    ["half a head", `${OK}${LENGTH}\r\n${BODY}HTTP/1.1 200 OK\r\nx-evil: `],
  ])("are dropped with their connection: %s", async (_what, bytes) => {
    const before = engine.connections;
    const answer = await answerTo(bytes);
    if (answer?.status === 200) expect(answer.body).toBe(BODY);
    expect(answer?.body ?? "").not.toContain("EVIL");
    await nextIsRight();
    expect(engine.connections - before).toBeGreaterThanOrEqual(1);
  });

  it("that come later, while the connection is idle, are dropped too", async () => {
    expect(await answerTo("")).not.toBeNull();
    const { socket, closed } = engine.requests.at(-1)!;
    socket.write(SECOND);
    await closed;
    await nextIsRight();
  });
});

describe("an answer that is odd and clear", () => {
  it.each([
    ["of HTTP/1.0", `HTTP/1.0 200 OK\r\n${LENGTH}\r\n${BODY}`],
    ["with chunks that have extensions", `${CHUNKS}14;a=b\r\n${BODY}\r\n0\r\n\r\n`],
    ["with trailers", `${CHUNKS}${CHUNK}\r\n0\r\nx-t: 1\r\n\r\n`],
    ["after 100 Continue that nobody asked for", `${CONTINUE}${OK}${LENGTH}\r\n${BODY}`],
    [
      "after some of them, with headers",
      `${CONTINUE}HTTP/1.1 100 Go\r\nx: y\r\n\r\n${CONTINUE}${CHUNKS}${CHUNK}\r\n0\r\n\r\n`,
    ],
    ["with a body that begins like one", `${OK}content-length: ${CONTINUE.length}\r\n\r\n${CONTINUE}`],
    ["after early hints", `HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n${OK}${LENGTH}\r\n${BODY}`],
    ["without a reason", `HTTP/1.1 200\r\n${LENGTH}\r\n${BODY}`],
    ["with a head of 18 KB", `${OK}x-a: ${"y".repeat(18_000)}\r\n${LENGTH}\r\n${BODY}`],
  ])("B053: %s is the client's, once", async (_what, bytes) => {
    const body = bytes.endsWith(CONTINUE) ? CONTINUE : BODY;
    expect(await answerTo(bytes)).toEqual({ status: 200, body });
    await nextIsRight();
  });

  it("after 100 Continue is the client's, wherever the bytes were cut; after too many of them it is none", async () => {
    const bytes = `${CONTINUE}${OK}${LENGTH}\r\n${BODY}`;
    const pieces = await setup.engine(({ socket }) => {
      const cut = 1 + ((pieces.requests.length * 5) % (CONTINUE.length + 10));
      socket.write(bytes.slice(0, cut), () => setTimeout(() => socket.write(bytes.slice(cut)), 2));
    });
    const many = await setup.engine(({ socket }) => socket.write(CONTINUE.repeat(40) + bytes));
    const [cut, stubborn] = [await setup.before({ a: pieces }), await setup.before({ a: many })];
    const client = await setup.client(cut);
    for (let at = 0; at < 12; at++) {
      client.post(CHAT, PLAIN_BODY);
      expect((await client.answer()).body.toString()).toBe(BODY);
    }
    const other = await setup.client(stubborn);
    other.post(CHAT, PLAIN_BODY);
    expect((await other.answer()).status).toBe(502);
  });

  it("of 204 has no length, whatever the engine says", async () => {
    script = `HTTP/1.1 204 No Content\r\n${LENGTH}\r\n${BODY}`;
    const client = await setup.client(gateway);
    client.post(CHAT, PLAIN_BODY);
    const answer = await client.answer();
    script = "";
    expect([answer.status, headerIn(answer, "content-length")]).toEqual([204, undefined]);
    await nextIsRight();
  });

  it("B018: keeps the connection's headers to itself, and each of the others as it stands", async () => {
    script = jsonAnswer(
      BODY,
      200,
      "connection: keep-alive, x-hop\r\nx-hop: 1\r\nkeep-alive: timeout=5\r\nproxy-authenticate: x\r\nupgrade: h2c\r\n" +
        "set-cookie: a=1\r\nset-cookie: b=2\r\nx-guidevane-engine: forged\r\nlocation: http://10.0.0.1/\r\nX-Own: Yes\r\n",
    );
    const client = await setup.client(gateway);
    client.post(CHAT, PLAIN_BODY);
    const answer = await client.answer();
    script = "";
    const names = answer.headers.map(([name]) => name.toLowerCase());
    for (const name of ["x-hop", "proxy-authenticate", "upgrade", "location", "transfer-encoding"])
      expect(names).not.toContain(name);
    expect(names.filter((name) => name === "set-cookie")).toHaveLength(2);
    expect(answer.headers).toContainEqual(["X-Own", "Yes"]);
    expect(headerIn(answer, "x-guidevane-engine")).toBe("a");
    expect(names.filter((name) => name === "content-length")).toHaveLength(1);
  });
});
