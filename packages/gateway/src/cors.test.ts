import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Gateway } from "./gateway.ts";
import { headerIn, type RawAnswer } from "./testing/raw-client.ts";
import { jsonAnswer, type ScriptedEngine } from "./testing/scripted-engine.ts";
import { CHAT, createSetup, PLAIN_BODY } from "./testing/setup.ts";

const setup = createSetup(afterAll);
const ENGINE_CORS = "access-control-allow-origin: *\r\naccess-control-allow-credentials: true\r\nvary: accept\r\n";

let engine: ScriptedEngine;
let some: Gateway;
let any: Gateway;
let none: Gateway;

beforeAll(async () => {
  engine = await setup.engine(({ socket }) => socket.write(jsonAnswer("{}", 200, ENGINE_CORS)));
  const keys = "clientKeys: { env: KEYS }";
  const secrets = { env: () => "k", file: () => "" };
  some = await setup.before({ a: engine }, `gateway: { cors: { origins: [https://a.example] }, ${keys} }`, { secrets });
  any = await setup.before({ a: engine }, 'gateway: { cors: { origins: ["*"] } }');
  none = await setup.before({ a: engine });
});

async function ask(at: Gateway, method: string, headers: string, target = CHAT): Promise<RawAnswer> {
  const client = await setup.client(at);
  const body = method === "POST" ? PLAIN_BODY : "";
  const length = method === "OPTIONS" ? "" : `content-length: ${Buffer.byteLength(body)}\r\n`;
  client.send(`${method} ${target} HTTP/1.1\r\nhost: x\r\n${headers}${length}\r\n${body}`);
  return client.answer();
}

/** Every value of each header that speaks to browsers. */
function cors(answer: RawAnswer): Record<string, string[]> {
  const found: Record<string, string[]> = {};
  for (const [name, value] of answer.headers) {
    if (!/^(access-control-allow-.*|vary|allow)$/i.test(name)) continue;
    found[name.toLowerCase()] = [...(found[name.toLowerCase()] ?? []), value];
  }
  return found;
}

const PREFLIGHT =
  "access-control-request-method: POST\r\naccess-control-request-headers: authorization,content-type\r\n";

describe("a preflight", () => {
  it("from an origin that may ask is answered with what it may send, without a key", async () => {
    const answer = await ask(some, "OPTIONS", `origin: https://a.example\r\n${PREFLIGHT}`);
    expect(answer.status).toBe(204);
    expect(cors(answer)).toEqual({
      allow: ["POST, OPTIONS"],
      vary: ["origin"],
      "access-control-allow-origin": ["https://a.example"],
      "access-control-allow-methods": ["POST, OPTIONS"],
      "access-control-allow-headers": ["authorization,content-type"],
    });
    expect(headerIn(answer, "access-control-max-age")).toBe("7200");
  });

  it("from another origin allows nothing", async () => {
    for (const origin of ["https://b.example", "https://a.example.evil", "http://a.example", "null"]) {
      const answer = await ask(some, "OPTIONS", `origin: ${origin}\r\n${PREFLIGHT}`);
      expect([answer.status, cors(answer)]).toEqual([204, { allow: ["POST, OPTIONS"], vary: ["origin"] }]);
    }
  });

  it("is refused where nothing is configured, and on a path that is not there", async () => {
    const answer = await ask(none, "OPTIONS", `origin: https://a.example\r\n${PREFLIGHT}`);
    expect([answer.status, cors(answer)]).toEqual([405, { allow: ["POST"] }]);
    expect((await ask(some, "OPTIONS", PREFLIGHT, "/nowhere")).status).toBe(404);
  });
});

describe("an answer to a page of another origin", () => {
  it("says the gateway's word alone, whatever the engine says", async () => {
    const answer = await ask(some, "POST", "origin: https://a.example\r\nauthorization: Bearer k\r\n");
    expect(answer.status).toBe(200);
    expect(cors(answer)).toEqual({
      vary: ["accept", "origin"],
      "access-control-allow-origin": ["https://a.example"],
    });
    expect(headerIn(answer, "access-control-expose-headers")).toContain("x-request-id");
  });

  it("that may not ask says nothing that lets it be read", async () => {
    const answer = await ask(some, "POST", "origin: https://b.example\r\nauthorization: Bearer k\r\n");
    expect([answer.status, cors(answer)]).toEqual([200, { vary: ["accept", "origin"] }]);
  });

  it("can be read where it is an error", async () => {
    const refused = await ask(some, "POST", "origin: https://a.example\r\n");
    expect([refused.status, cors(refused)]).toEqual([
      401,
      { vary: ["origin"], "access-control-allow-origin": ["https://a.example"] },
    ]);
    const models = await ask(any, "GET", "origin: https://b.example\r\n", "/v1/models");
    expect([models.status, cors(models)]).toEqual([200, { "access-control-allow-origin": ["*"] }]);
  });

  it("is the engine's where nothing is configured", async () => {
    expect(cors(await ask(none, "POST", "origin: https://a.example\r\n"))).toEqual({
      vary: ["accept"],
      "access-control-allow-origin": ["*"],
      "access-control-allow-credentials": ["true"],
    });
  });
});
