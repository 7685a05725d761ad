import { afterEach, describe, expect, it } from "vitest";
import type { Decision } from "./decision.ts";
import type { Gateway } from "./gateway.ts";
import { fleetOf } from "./testing/fleet.ts";
import { headerIn } from "./testing/raw-client.ts";
import { type EngineRequestSeen, jsonAnswer } from "./testing/scripted-engine.ts";
import { createSetup } from "./testing/setup.ts";
import { snapshotOf } from "./testing/snapshot.ts";

/** What one client's conversations are must tell nothing about another one's, whatever they call them. */

const setup = createSetup(afterEach);
const secrets = { env: () => "key-a1 a\nkey-a2 a\nkey-b b\nkey-c\n", file: () => "" };

/** A gateway of some engines whose clients must bring a key. @param answer by engine */
async function gatewayOf(answer: (engine: string) => string): Promise<Gateway> {
  const urls: Record<string, string> = {};
  for (const name of ["x", "y", "z"]) {
    const good = ({ socket }: EngineRequestSeen): void => void socket.write(jsonAnswer(answer(name)));
    urls[name] = (await setup.engine(good)).url;
  }
  const fleet = await fleetOf(urls, "gateway: { clientKeys: { env: KEYS } }");
  const gateway = await setup.gateway(fleet, { secrets });
  await gateway.offer(JSON.stringify(snapshotOf(fleet, { version: 1 }, { x: 0.3, y: 0.3, z: 0.4 })));
  return gateway;
}

/** What became of one request. */
async function ask(gateway: Gateway, path: string, key: string, body: object, headers: Record<string, string> = {}) {
  const client = await setup.client(gateway);
  client.post(path, JSON.stringify({ model: "m", ...body }), { authorization: `Bearer ${key}`, ...headers });
  const answer = await client.answer();
  client.close();
  expect(answer.status).toBe(200);
  const id = headerIn(answer, "x-request-id");
  return (await (await fetch(`${gateway.adminUrl}/v1/decisions/${id}`)).json()) as Decision;
}

const CHAT = "/v1/chat/completions";
const RESPONSES = "/v1/responses";
const messages = [{ role: "user", content: "the same words" }];

describe("a client's key", () => {
  it.each([
    ["header", CHAT, { messages }, { "x-session-id": "session-1" }],
    ["prompt_cache_key", CHAT, { messages, prompt_cache_key: "k" }, {}],
    ["conversation", RESPONSES, { input: "i", conversation: "conv_1" }, {}],
    ["session_id", "/v1/messages", { messages, max_tokens: 9, metadata: { session_id: "s" } }, {}],
    ["prompt", CHAT, { messages }, {}],
  ])("keeps a conversation apart from those of other clients: %s", async (source, path, body, headers) => {
    const gateway = await gatewayOf(() => "{}");
    const keyOf = async (key: string) => (await ask(gateway, path, key, body, headers)).key;
    const [a1, a2, b, c] = [await keyOf("key-a1"), await keyOf("key-a2"), await keyOf("key-b"), await keyOf("key-c")];
    expect(a1.source).toBe(source);
    // Two keys of one client are one client.
    expect(a2).toEqual(a1);
    // Slots of three: by chance two of them may be one, once in a hundred, and for these names they are not.
    expect(new Set([a1.slot, b.slot, c.slot]).size).toBe(3);
  });

  it("follows an answer of the Responses API for the client alone that has it", async () => {
    const gateway = await gatewayOf((engine) => `{"id":"resp_${engine}","object":"response","status":"completed"}`);
    const followed = async (key: string, id: string) =>
      (await ask(gateway, RESPONSES, key, { input: "and then", previous_response_id: id })).key.source;
    const first = await ask(gateway, RESPONSES, "key-a1", { input: "begin" });
    const id = `resp_${first.attempts[0]!.engine}`;
    expect(await followed("key-b", id)).toBe("prompt");
    expect(await followed("key-c", id)).toBe("prompt");
    expect(await followed("key-a2", id)).toBe("previous_response_id");
  });
});
