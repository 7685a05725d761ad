import { describe, expect, it } from "vitest";
import { CHAT_BODY, describeRouters } from "./driver.fixture.ts";
import { OUT, PATH } from "./router.ts";
import { makeSnapshot } from "./snapshot.fixture.ts";

const snapshot = makeSnapshot([{ class: "chat", engines: [{ id: "a", weight: 1 }] }]);

interface Message {
  readonly role: string;
  readonly content: unknown;
}

describeRouters(describe, "key", (load) => {
  it("hashes a session header's bytes with seeds 0 and 1 of XXH32", () => {
    const driver = load(snapshot);
    driver.route(CHAT_BODY, { key: "abc" });
    expect(driver.keySource).toBe("header");
    expect(driver.out[OUT.keyHash]).toBe(0x32d153ff);
    expect(driver.out[OUT.keyHash2]).toBe(0xaa3da8ff);
    expect(driver.out[OUT.slot]).toBe(0x32d153ff >>> 20);
  });

  it("takes the first source that is there and not empty", () => {
    const driver = load(snapshot);
    const whole = {
      prompt_cache_key: "cache",
      conversation: "conv",
      metadata: { session_id: "session" },
      messages: [{ role: "user", content: "hi" }],
    };
    const source = (body: object, key?: string) => {
      driver.route(JSON.stringify(body), key === undefined ? {} : { key });
      return driver.keySource;
    };
    expect(source(whole, "header")).toBe("header");
    expect(source(whole)).toBe("prompt_cache_key");
    expect(source({ ...whole, prompt_cache_key: "" })).toBe("conversation");
    expect(source({ ...whole, prompt_cache_key: 7, conversation: { id: "conv" } })).toBe("conversation");
    expect(source({ ...whole, prompt_cache_key: null, conversation: { id: "" } })).toBe("session_id");
    expect(source({ messages: whole.messages, metadata: {} })).toBe("prompt");
    expect(source({ user: "someone" })).toBe("none");
  });

  it("gives one text one key, whichever field carries it and however it is escaped", () => {
    const driver = load(snapshot);
    const hashes = (body: string, key?: string) => {
      driver.route(body, key === undefined ? {} : { key });
      return driver.keyHashes;
    };
    const expected = hashes("{}", "s/1");
    expect(hashes('{"prompt_cache_key":"s/1"}')).toEqual(expected);
    expect(hashes('{"prompt_cache_key":"s\\/1"}')).toEqual(expected);
    expect(hashes('{"conversation":"s/1"}')).toEqual(expected);
    expect(hashes('{"conversation":{"object":"x","id":"s\\u002f1"}}')).toEqual(expected);
    expect(hashes('{"metadata":{"session_id":"s/1"}}')).toEqual(expected);
  });

  it("keeps tenants apart", () => {
    const driver = load(snapshot);
    const hashes = (tenant: number) => {
      driver.route(CHAT_BODY, { key: "abc", tenant });
      const header = driver.keyHashes;
      driver.route(CHAT_BODY, { tenant });
      return [header, driver.keyHashes];
    };
    const [one, other] = [hashes(0x1234), hashes(0xffff_ffff)];
    expect(one[0]).not.toEqual(other[0]);
    expect(one[1]).not.toEqual(other[1]);
  });

  it("keeps a chat's key as turns are appended", () => {
    const driver = load(snapshot);
    const messages: Message[] = [
      { role: "system", content: "be kind" },
      { role: "user", content: "hello" },
    ];
    const hashes = () => {
      driver.route(JSON.stringify({ messages }));
      return driver.keyHashes;
    };
    const first = hashes();
    for (const message of [
      { role: "assistant", content: "hi" },
      { role: "user", content: "and?" },
      { role: "system", content: "be brief" },
      { role: "tool", content: "42" },
      { role: "developer", content: "be brief" },
    ]) {
      messages.push(message);
      expect(hashes()).toEqual(first);
    }
  });

  it("parts chats that differ in a system message or in the first user message", () => {
    const driver = load(snapshot);
    const seen = new Set<string>();
    for (const messages of [
      [{ role: "user", content: "hello" }],
      [{ role: "user", content: "hello!" }],
      [{ role: "system", content: "hello" }],
      [
        { role: "system", content: "be kind" },
        { role: "user", content: "hello" },
      ],
      [
        { role: "developer", content: "be cold" },
        { role: "user", content: "hello" },
      ],
      [
        { role: "system", content: "be" },
        { role: "system", content: " kind" },
        { role: "user", content: "hello" },
      ],
      [{ role: "user", content: [{ type: "text", text: "hello" }] }],
    ]) {
      driver.route(JSON.stringify({ messages }));
      seen.add(driver.keyHashes.join());
    }
    // The system message alone has the text of the first user message alone, and so its key.
    expect(seen.size).toBe(6);
  });

  it("spreads conversations that share a system prompt longer than the key", () => {
    const driver = load(snapshot);
    const seen = new Set<string>();
    for (let i = 0; i < 100; i++) {
      const messages = [
        { role: "system", content: "You are an agent. ".repeat(1000) },
        { role: "user", content: `task ${i}` },
      ];
      driver.route(JSON.stringify({ messages }));
      seen.add(driver.keyHashes.join());
    }
    expect(seen.size).toBe(100);
  });

  it("looks at the first 4,096 bytes of a message and at the first 1,024 of a raw prompt or an input", () => {
    const driver = load(snapshot);
    const cases = [
      [4096, PATH.chat, (content: string) => ({ messages: [{ role: "user", content }] })],
      [1024, PATH.completions, (prompt: string) => ({ prompt })],
      [1024, PATH.embeddings, (input: string) => ({ input })],
    ] as const;
    for (const [bytes, path, make] of cases) {
      const hashes = (text: string) => {
        driver.route(JSON.stringify(make(text)), { path });
        expect(driver.keySource).toBe("prompt");
        return driver.keyHashes;
      };
      // The value's opening quote is the first byte.
      const same = "x".repeat(bytes - 1);
      expect(hashes(`${same}a`)).toEqual(hashes(`${same}b and more`));
      expect(hashes(`${same.slice(1)}a`)).not.toEqual(hashes(`${same.slice(1)}b`));
    }
  });

  it.each([
    ["chat", { messages: [{ role: "user", content: "m" }] }],
    ["messages", { messages: [{ role: "user", content: "m" }] }],
    ["countTokens", { messages: [{ role: "user", content: "m" }] }],
    ["completions", { prompt: "p" }],
    ["embeddings", { input: "i" }],
    ["embeddings", { messages: [{ role: "user", content: "m" }] }],
    ["responses", { input: "i" }],
    ["rerank", { query: "q", documents: ["d"] }],
    ["score", { text_1: "q", text_2: ["d"] }],
    ["score", { queries: "q", documents: ["d"] }],
    ["tokenize", { prompt: "p" }],
    ["tokenize", { messages: [{ role: "user", content: "m" }] }],
    ["detokenize", { tokens: [1, 2, 3] }],
  ] as const)("takes the prompt of a %s body from where that API has it: %o", (path, body) => {
    const driver = load(snapshot);
    const hashes = (value: object) => {
      driver.route(JSON.stringify({ model: "m-chat", temperature: 0, ...value }), { path: PATH[path] });
      return driver.keyHashes;
    };
    const first = hashes(body);
    expect(driver.keySource).toBe("prompt");
    expect(hashes({ ...body, temperature: 1 })).toEqual(first);
    const [name] = Object.keys(body) as [string];
    expect(hashes({ ...body, [name]: [{ role: "user", content: "another" }] })).not.toEqual(first);
  });

  it("keeps the key of a messages body as turns are appended, and parts bodies that differ in their system", () => {
    const driver = load(snapshot);
    const hashes = (system: unknown, messages: readonly Message[]) => {
      driver.route(JSON.stringify({ system, messages }), { path: PATH.messages });
      return driver.keyHashes;
    };
    const asked: Message = { role: "user", content: [{ type: "text", text: "hello" }] };
    const first = hashes("be kind", [asked]);
    const answered: Message = { role: "assistant", content: [{ type: "tool_use", id: "t", name: "f", input: {} }] };
    const result: Message = { role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: "42" }] };
    expect(hashes("be kind", [asked, answered, result])).toEqual(first);
    expect(hashes("be cold", [asked])).not.toEqual(first);
    expect(hashes([{ type: "text", text: "be kind" }], [asked])).not.toEqual(first);
  });

  it("keeps the key of a responses body that resends its input, and parts bodies that differ in their instructions", () => {
    const driver = load(snapshot);
    const hashes = (instructions: string, input: unknown) => {
      driver.route(JSON.stringify({ instructions, input }), { path: PATH.responses });
      return driver.keyHashes;
    };
    const first = hashes("be kind", "hello");
    const asked = { role: "user", content: "hello" };
    const call = { type: "function_call", call_id: "c", name: "f", arguments: "{}" };
    const result = { type: "function_call_output", call_id: "c", output: "42" };
    expect(hashes("be kind", [asked])).toEqual(first);
    expect(hashes("be kind", [asked, call, result])).toEqual(first);
    expect(hashes("be kind", [{ role: "developer", content: "x" }, asked])).not.toEqual(first);
    expect(hashes("be cold", "hello")).not.toEqual(first);
    // Without a message of the user's the list's beginning tells conversations apart.
    expect(hashes("be kind", [result])).not.toEqual(hashes("be kind", [{ ...result, call_id: "d" }]));
  });

  it("takes previous_response_id for the key once its engine is known, and no earlier", () => {
    const driver = load(snapshot);
    const body = JSON.stringify({ previous_response_id: "resp_1", conversation: "c", input: "more" });
    const source = (options: object) => {
      driver.route(body, { path: PATH.responses, ...options });
      return driver.keySource;
    };
    expect(source({})).toBe("conversation");
    expect(source({ followed: "a" })).toBe("previous_response_id");
    expect(source({ followed: "a", key: "session" })).toBe("header");
  });

  it("draws another place each time for a request that has no key", () => {
    const driver = load(
      makeSnapshot([
        {
          class: "chat",
          engines: [
            { id: "a", weight: 0.5 },
            { id: "b", weight: 0.5 },
          ],
        },
      ]),
    );
    const counts = { a: 0, b: 0 };
    for (let i = 0; i < 1000; i++) counts[driver.route('{"messages":[]}') as "a" | "b"]++;
    expect(driver.keySource).toBe("none");
    // Five standard deviations.
    expect(Math.abs(counts.a - 500)).toBeLessThan(80);
  });
});
