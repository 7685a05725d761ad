import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadClientKeys } from "./client-keys.ts";
import type { Gateway } from "./gateway.ts";
import { fleetOf } from "./testing/fleet.ts";
import { headerIn, type RawAnswer } from "./testing/raw-client.ts";
import { jsonAnswer, type ScriptedEngine } from "./testing/scripted-engine.ts";
import { CHAT, createSetup, PLAIN_BODY } from "./testing/setup.ts";

const setup = createSetup(afterAll);
const KEY = "sk-Client-1";

/** What the source of keys holds now; null = it can't be read. */
let source: string | null = `${KEY}\n\n# the other team\nsk-two team-b\r\nsk-three team-b\n`;
const secrets = {
  env: (name: string) => (name === "KEYS" ? (source ?? undefined) : "sk-engine"),
  file: () => {
    if (source === null) throw new Error("no such file");
    return source;
  },
};
const logged: string[] = [];
const logger = Object.fromEntries(
  ["info", "warn", "error"].map((level) => [level, (...said: unknown[]) => logged.push(JSON.stringify(said))]),
) as unknown as Record<"info" | "warn" | "error", () => void>;

let plain: ScriptedEngine;
let passing: ScriptedEngine;
let gateway: Gateway;
let passingGateway: Gateway;

beforeAll(async () => {
  plain = await setup.engine(({ socket }) => socket.write(jsonAnswer("{}")));
  passing = await setup.engine(({ socket }) => socket.write(jsonAnswer("{}")));
  const keys = "gateway: { clientKeys: { env: KEYS } }";
  const own = ", auth: { keyEnv: ENGINE }";
  gateway = await setup.gateway(await fleetOf({ a: plain.url }, keys, own), { secrets, logger });
  const pass = ", auth: { passthrough: true }";
  passingGateway = await setup.gateway(await fleetOf({ a: passing.url }, keys, pass), { secrets, logger });
});

async function ask(headers: string, { target = CHAT, at = gateway } = {}): Promise<RawAnswer> {
  const client = await setup.client(at);
  const length = Buffer.byteLength(PLAIN_BODY);
  client.send(`POST ${target} HTTP/1.1\r\nhost: x\r\n${headers}content-length: ${length}\r\n\r\n${PLAIN_BODY}`);
  const answer = await client.answer();
  client.close();
  return answer;
}

describe("a client's key", () => {
  it.each([
    `Authorization: Bearer ${KEY}\r\n`,
    `authorization: bearer ${KEY}\r\n`,
    `AUTHORIZATION: BEARER   ${KEY}\r\n`,
    `Authorization: Bearer ${KEY} \r\n`,
    `Authorization: Bearer ${KEY}\t\r\n`,
    `x-api-key: ${KEY}\r\n`,
    `api-key: ${KEY}\r\n`,
    `x-goog-api-key: ${KEY}\r\n`,
    `authorization: Bearer of-another\r\nx-api-key: ${KEY}\r\n`,
    "authorization: Bearer sk-two\r\n",
  ])("B179: is known: %j", async (headers) => {
    expect((await ask(headers)).status).toBe(200);
  });

  it.each([
    "",
    "authorization: Bearer\r\n",
    "authorization: Bearer \r\n",
    `authorization: ${KEY}\r\n`,
    `authorization: Basic ${KEY}\r\n`,
    `authorization: Bearer ${KEY.toUpperCase()}\r\n`,
    `authorization: Bearer ${KEY}x\r\n`,
    `authorization: Bearer ${KEY.slice(0, -1)}\r\n`,
    `authorization: Bearer ${KEY} x\r\n`,
    `authorization: Bearer ${KEY}\r\nauthorization: Bearer ${KEY}\r\n`,
    `x-api-key: ${KEY}\r\nx-api-key: other\r\n`,
    "authorization: Bearer team-b\r\n",
    "authorization: Bearer # the other team\r\n",
  ])("B179: is not known: %j", async (headers) => {
    const before = plain.requests.length;
    const answer = await ask(headers);
    expect([answer.status, headerIn(answer, "www-authenticate")]).toEqual([401, "Bearer"]);
    expect(JSON.parse(answer.body.toString())).toMatchObject({ error: { code: "invalid_api_key" } });
    expect(answer.body.toString()).not.toContain(KEY.slice(3));
    expect(plain.requests.length).toBe(before);
  });

  it("is asked for on every path, in the words of its API, and not in the query", async () => {
    expect((await ask("", { target: `${CHAT}?key=${KEY}&api_key=${KEY}` })).status).toBe(401);
    const anthropic = JSON.parse((await ask("", { target: "/v1/messages" })).body.toString());
    expect(anthropic).toMatchObject({ type: "error", error: { type: "authentication_error" } });
    const client = await setup.client(gateway);
    client.send("GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n");
    expect((await client.answer()).status).toBe(401);
  });

  it("B033: that is wrong is answered before the body is sent", async () => {
    const client = await setup.client(gateway);
    client.send(`POST ${CHAT} HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 100\r\n\r\n`);
    expect((await client.answer()).status).toBe(401);
  });

  it("goes to no engine, not even to one that takes the client's credentials, and into no log", async () => {
    await ask(`authorization: Bearer ${KEY}\r\n`);
    expect(plain.requests.at(-1)!.headers).toContainEqual(["authorization", "Bearer sk-engine"]);
    await ask(`Authorization: Bearer theirs\r\nX-Api-Key: ${KEY}\r\n`, {
      target: `${CHAT}?key=${KEY}&a=b`,
      at: passingGateway,
    });
    const seen = passing.requests.at(-1)!;
    expect(seen.requestLine).toBe(`POST ${CHAT}?a=b HTTP/1.1`);
    expect(seen.headers).toContainEqual(["Authorization", "Bearer theirs"]);
    for (const { requestLine, headers } of [...plain.requests, ...passing.requests])
      expect(JSON.stringify([requestLine, headers])).not.toContain(KEY);
    expect(logged.join()).not.toContain(KEY);
  });
});

describe("the source of keys", () => {
  it("is read again on reload: what was taken out is refused, and one that can't be read changes nothing", async () => {
    const present = source;
    const fleet = await fleetOf({ a: plain.url }, "gateway: { clientKeys: { env: KEYS } }");
    const second = await setup.gateway(fleet, { secrets });
    source = "sk-new\n";
    expect(second.reload(fleet)).toEqual([]);
    expect((await ask(`authorization: Bearer ${KEY}\r\n`, { at: second })).status).toBe(401);
    expect((await ask("authorization: Bearer sk-new\r\n", { at: second })).status).toBe(200);
    for (const broken of [null, "", " \n\t\n", "# none\n"]) {
      source = broken;
      expect(() => second.reload(fleet)).toThrow(/clientKeys\.env KEYS: (is not set|holds no key)/);
      expect((await ask("authorization: Bearer sk-new\r\n", { at: second })).status).toBe(200);
      await expect(setup.gateway(fleet, { secrets })).rejects.toThrow("gateway.clientKeys.env KEYS");
    }
    source = present;
  });

  it("gives keys of one name one tenant, and others one each that does not tell the key", () => {
    const [first, ...named] = loadClientKeys({ file: "keys" }, secrets)!.map(({ tenant }) => tenant);
    expect(first).toMatch(/^key-[0-9a-f]{12}$/);
    expect(named).toEqual(["team-b", "team-b"]);
    expect(loadClientKeys(undefined, secrets)).toBeNull();
  });

  it.each([
    ["one two three", "line 1 has more than a key and a tenant"],
    ["one a\n\none b", "line 3 repeats a key"],
  ])("is refused where a line can't be meant: %j", (text, why) => {
    const present = source;
    source = text;
    expect(() => loadClientKeys({ file: "keys" }, secrets)).toThrow(`gateway.clientKeys.file keys: ${why}`);
    source = present;
  });

  it("is named with what is wrong where a file can't be read", () => {
    const present = source;
    source = null;
    expect(() => loadClientKeys({ file: "keys" }, secrets)).toThrow(
      "gateway.clientKeys.file keys: can't be read: no such",
    );
    source = present;
  });
});
