import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findLlamaTools, type LlamaEngine, startLlamaEngine } from "./llama-engine.ts";
import { type Gateway, Whole } from "./whole.ts";

const tools = findLlamaTools();
const skipped = typeof tools === "string";
const messages = [{ role: "user" as const, content: "Tell me something." }];

describe.skipIf(skipped)(`a real llama.cpp server behind the gateway${skipped ? ` (skipped: ${tools})` : ""}`, () => {
  const whole = new Whole();
  let engine: LlamaEngine;
  let gateway: Gateway;

  beforeAll(async () => {
    engine = await startLlamaEngine(tools as Exclude<typeof tools, string>);
    whole.onStop(() => engine.stop());
    whole.writeFleet(
      { llama: { url: engine.url, models: ["tiny"], kind: "openai" } },
      { classes: { chat: { model: "tiny" } } },
    );
    const control = await whole.control();
    gateway = await whole.gateway(control.url);
  });
  afterAll(() => whole.stop());

  it("says its known text, whole", async () => {
    const answer = await gateway.client.chat.completions.create({ model: "tiny", messages });
    expect(answer.choices[0]!.message.content).toBe(engine.expected.text);
  });

  it("says its known text, streaming, again and again on connections that it closes after each stream", async () => {
    for (let round = 0; round < 10; round++) {
      let text = "";
      const stream = await gateway.client.chat.completions.create({ model: "tiny", messages, stream: true });
      for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? "";
      expect(text).toBe(engine.expected.text);
    }
  });

  it("says it to eight clients at once", async () => {
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => gateway.client.chat.completions.create({ model: "tiny", messages })),
    );
    expect(answers.map((answer) => answer.choices[0]!.message.content)).toEqual(
      answers.map(() => engine.expected.text),
    );
  });
});
