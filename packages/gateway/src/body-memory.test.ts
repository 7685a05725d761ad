import { constants, gzipSync, zstdCompressSync } from "node:zlib";
import { afterEach, describe, expect, it, vi } from "vitest";
import { BodyMemory, BodyShare, bodyMemoryBytes } from "./body-memory.ts";
import { headerIn } from "./testing/raw-client.ts";
import { chunked, jsonAnswer, STREAM_HEAD } from "./testing/scripted-engine.ts";
import { CHAT, createSetup, eventually } from "./testing/setup.ts";

const SMALL = 65_536;

afterEach(() => {
  vi.restoreAllMocks();
});

describe("the memory of bodies", () => {
  it("counts what is beyond a small body, refuses what has no room, and is whole again after", () => {
    const memory = new BodyMemory(() => 1000);
    const [one, other] = [memory.share(), memory.share()];
    expect(one.add(SMALL)).toBe(true);
    expect(memory.heldBytes).toBe(0);
    expect(one.add(900)).toBe(true);
    expect(other.add(SMALL - 1)).toBe(true);
    expect(other.add(102)).toBe(false);
    expect(memory.heldBytes).toBe(900);
    expect(other.add(101)).toBe(true);
    expect(memory.heldBytes).toBe(1000);
    one.release();
    one.release();
    expect(memory.heldBytes).toBe(100);
    other.release();
    expect(memory.heldBytes).toBe(0);
  });

  it("is a part of the machine's, and has room for some of the largest bodies anyway", () => {
    expect(bodyMemoryBytes(2 ** 20)).toBeGreaterThan(2 ** 22);
    expect(bodyMemoryBytes(2 ** 50)).toBe(2 ** 52);
  });

  it("inflates a few at a time, in the order in which they came, whatever becomes of each", async () => {
    const memory = new BodyMemory(() => 0);
    const begun: number[] = [];
    const ends: (() => void)[] = [];
    const all = Array.from({ length: 7 }, (_, at) =>
      memory
        .inflate(async () => {
          begun.push(at);
          await new Promise<void>((resolve) => ends.push(resolve));
          if (at === 1) throw new Error("no gzip");
        })
        .catch(() => {}),
    );
    const turn = () => new Promise((resolve) => setImmediate(resolve));
    await turn();
    expect(begun).toEqual([0, 1, 2, 3]);
    ends[1]!();
    await turn();
    expect(begun).toEqual([0, 1, 2, 3, 4]);
    for (let at = 0; at < 7; at++) {
      ends[at]!();
      await turn();
    }
    await Promise.all(all);
    expect(begun).toEqual([0, 1, 2, 3, 4, 5, 6]);
    await memory.inflate(async () => begun.push(7));
    expect(begun).toHaveLength(8);
  });
});

describe("a gateway", () => {
  const setup = createSetup(afterEach);
  const text = Buffer.from(`{"model":"m","stream":true,"x":"${"y".repeat(300_000)}"}`);
  const head = (length: number, more = ""): string =>
    `POST ${CHAT} HTTP/1.1\r\nhost: x\r\n${more}content-length: ${length}\r\n\r\n`;

  it("holds a body until its answer begins, its client leaves or it is refused, and no longer", async () => {
    const shares = vi.spyOn(BodyMemory.prototype, "share");
    const heldBytes = (): number => (shares.mock.contexts[0] as BodyMemory).heldBytes;
    const engine = await setup.engine();
    const gateway = await setup.before({ a: engine });

    const served = await setup.client(gateway);
    served.post(CHAT, text);
    const first = await engine.next();
    expect(heldBytes()).toBe(text.length - SMALL);
    first.socket.write(Buffer.concat([Buffer.from(STREAM_HEAD), chunked('data: {"x":1}\n\n')]));
    await served.until("data: ");
    expect(heldBytes()).toBe(0);

    const zipped = await setup.client(gateway);
    const small = gzipSync(text);
    zipped.post(CHAT, small, { "content-encoding": "gzip" });
    const second = await engine.next();
    expect(heldBytes()).toBe(small.length + text.length - SMALL);
    second.socket.write(jsonAnswer("{}", 400));
    expect((await zipped.answer()).status).toBe(400);
    expect(heldBytes()).toBe(0);

    const leaving = await setup.client(gateway);
    leaving.send(head(text.length));
    leaving.send(text.subarray(0, 200_000));
    await eventually(() => heldBytes() > 0);
    leaving.close();
    await eventually(() => heldBytes() === 0);

    const refused = await setup.client(gateway);
    refused.post(CHAT, text.subarray(0, 200_000));
    expect((await refused.answer()).status).toBe(400);
    expect(heldBytes()).toBe(0);
  });

  it("refuses a compressed body that asks for a large window to inflate in", async () => {
    const bytes = zstdCompressSync(Buffer.alloc(9_000_000, `{"model":"m","x":"y"} `), {
      params: { [constants.ZSTD_c_windowLog]: 25 },
    });
    const client = await setup.client(await setup.before({ a: await setup.engine() }));
    client.post(CHAT, bytes, { "content-encoding": "zstd" });
    const answer = await client.answer();
    expect([answer.status, JSON.parse(answer.body.toString()).error.code]).toEqual([400, "invalid_encoding"]);
  });

  it("that has no more room says so, and that it will have", async () => {
    vi.spyOn(BodyShare.prototype, "add").mockReturnValue(false);
    const engine = await setup.engine();
    const client = await setup.client(await setup.before({ a: engine }));
    client.send(head(text.length));
    client.send(text);
    const answer = await client.answer();
    expect([answer.status, headerIn(answer, "retry-after")]).toEqual([503, "1"]);
    expect(JSON.parse(answer.body.toString())).toMatchObject({ error: { code: "gateway_overloaded" } });
    expect(engine.requests).toEqual([]);
  });
});
