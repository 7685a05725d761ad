import { brotliCompressSync, gzipSync, zstdCompressSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fleetOf } from "./testing/fleet.ts";
import type { RawClient } from "./testing/raw-client.ts";
import { jsonAnswer, type ScriptedEngine } from "./testing/scripted-engine.ts";
import { CHAT, createSetup } from "./testing/setup.ts";

const setup = createSetup(afterAll);
const MODEL = 'org/"a" model';

let engine: ScriptedEngine;
let other: ScriptedEngine;
let client: RawClient;

beforeAll(async () => {
  engine = await setup.engine(({ socket, body }) =>
    socket.write(body.includes("busy") ? jsonAnswer("{}", 503) : jsonAnswer("{}")),
  );
  other = await setup.engine(({ socket }) => socket.write(jsonAnswer("{}")));
  const aliases = JSON.stringify({ fast: MODEL, "schnell/é": MODEL });
  const fleet = await fleetOf({ a: engine.url, b: other.url }, `aliases: ${aliases}`, "", JSON.stringify([MODEL, "m"]));
  client = await setup.client(await setup.gateway(fleet));
});

/** What engines got of a request, and the status. */
async function sent(body: string | Buffer, headers: Readonly<Record<string, string>> = {}) {
  const before = [engine.requests.length, other.requests.length];
  client.post(CHAT, body, headers);
  const { status } = await client.answer();
  return { status, seen: [...engine.requests.slice(before[0]), ...other.requests.slice(before[1])] };
}

describe("a model's alias", () => {
  const name = JSON.stringify(MODEL);
  it.each([
    ["as it stands", '{"model":"fast","messages":[]}', `{"model":${name},"messages":[]}`],
    [
      "beside numbers, spaces and other fields that stay as they are",
      '{ "seed":9007199254740993,\t"t":1.0 ,"x":{"model":"fast","n":1e2},"model" : "fast" ,"y":1,"y":2}\n',
      `{ "seed":9007199254740993,\t"t":1.0 ,"x":{"model":"fast","n":1e2},"model" : ${name} ,"y":1,"y":2}\n`,
    ],
    ["with letters beyond ASCII", '{"model":"schnell/é","x":"é"}', `{"model":${name},"x":"é"}`],
    ["with escapes", '{"model":"f\\u0061st","x":"\\u00e9"}', `{"model":${name},"x":"\\u00e9"}`],
    ["under an escaped name", '{"mod\\u0065l":"fast"}', `{"mod\\u0065l":${name}}`],
    ["as the last of two models", '{"model":"m","model":"fast"}', `{"model":"m","model":${name}}`],
  ])("B038: is replaced by its name: %s", async (_what, body, expected) => {
    const { status, seen } = await sent(body, { "content-digest": "sha-256=:x:", "x-kept": "1" });
    expect(status).toBe(200);
    expect(seen).toHaveLength(1);
    expect(seen[0]!.body.toString()).toBe(expected);
    expect(seen[0]!.headers).toContainEqual(["content-length", String(Buffer.byteLength(expected))]);
    expect(seen[0]!.headers).toContainEqual(["x-kept", "1"]);
    expect(seen[0]!.headers.map(([each]) => each)).not.toContain("content-digest");
  });

  it.each([
    ["another model's name", '{"model":"m","x":"fast"}'],
    ["the last of two models is another", '{"model":"fast","model":"m"}'],
  ])("leaves every byte where it is not the model: %s", async (_what, body) => {
    const { seen } = await sent(body, { "content-digest": "sha-256=:x:" });
    expect(seen[0]!.body.toString()).toBe(body);
    expect(seen[0]!.headers).toContainEqual(["content-digest", "sha-256=:x:"]);
  });

  it.each([
    ["gzip", gzipSync],
    ["br", brotliCompressSync],
    ["zstd", zstdCompressSync],
  ] as const)(
    "B037: in a %s body makes it go on as plain text; without one the bytes stay",
    async (coding, compress) => {
      const aliased = await sent(compress('{"model":"fast"}'), { "content-encoding": coding });
      expect(aliased.seen[0]!.body.toString()).toBe(`{"model":${name}}`);
      expect(aliased.seen[0]!.headers.map(([each]) => each)).not.toContain("content-encoding");
      const plain = compress('{"model":"m"}');
      const { seen } = await sent(plain, { "content-encoding": coding });
      expect(seen[0]!.body.equals(plain)).toBe(true);
      expect(seen[0]!.headers).toContainEqual(["content-encoding", coding]);
    },
  );

  it("is replaced for every engine that a request goes to", async () => {
    for (let at = 0; at < 8; at++) {
      const { seen } = await sent(`{"model":"fast","prompt_cache_key":"${at}","x":"busy"}`);
      for (const { body } of seen) expect(body.toString()).toContain(`"model":${name},`);
    }
  });

  it("is among the models, with what it stands for", async () => {
    client.send("GET /v1/models/schnell%2F%C3%A9 HTTP/1.1\r\nhost: x\r\n\r\n");
    expect(JSON.parse((await client.answer()).body.toString())).toMatchObject({ id: "schnell/é", root: MODEL });
    client.send("GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n");
    const list = JSON.parse((await client.answer()).body.toString()) as { data: { id: string }[] };
    expect(list.data.map(({ id }) => id)).toEqual(["fast", "m", MODEL, "schnell/é"]);
  });
});
