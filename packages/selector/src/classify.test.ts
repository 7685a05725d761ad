import { describe, expect, it } from "vitest";
import { describeRouters } from "./driver.fixture.ts";
import { NEED, OUT, PATH } from "./router.ts";
import { makeSnapshot } from "./snapshot.fixture.ts";

const needs = { capabilities: [], residency: [], compute: [], contextTokens: 0, networkMs: null };
const image = { type: "image_url", image_url: { url: "data:" } };

function chat(more: object = {}, content: unknown = "hi"): string {
  return JSON.stringify({ model: "m-chat", messages: [{ role: "user", content }], ...more });
}

describeRouters(describe, "classify", (load) => {
  const one = () => load(makeSnapshot([{ class: "chat", engines: [{ id: "a", weight: 1 }] }]));
  const two = () =>
    load(
      makeSnapshot([
        { class: "chat", engines: [{ id: "a", weight: 1 }] },
        { class: "other", engines: [{ id: "b", weight: 1 }] },
      ]),
    );

  it.each([
    ["no JSON", "hello", "notJson"],
    ["nothing", "", "notJson"],
    ["a list", "[]", "notJson"],
    ["half an object", '{"model":"m-chat"', "notJson"],
    ["a byte order mark", '\ufeff{"model":"m-chat"}', "notJson"],
    ["a body without a model", "{}", "modelRequired"],
    ["a model that is no string", '{"model":7}', "modelRequired"],
    ["an empty model", '{"model":""}', "modelRequired"],
    ["an unknown model", '{"model":"m-cha"}', "modelNotFound"],
    ["an unusual body beyond 1 MiB", `{"model":"m-chat","model":"${"x".repeat(1_048_576)}"}`, "tooUnusual"],
  ] as const)("refuses %s", (_, body, status) => {
    const driver = two();
    expect(driver.route(body)).toBe(null);
    expect(driver.status).toBe(status);
    expect(driver.home).toBe(null);
  });

  it("takes the fleet's only model where none is named, and no other one where another is", () => {
    const driver = one();
    expect(driver.route("{}")).toBe("a");
    expect(driver.route('{"model":null}')).toBe("a");
    expect(driver.route('{"model":"m-other"}')).toBe(null);
    expect(driver.status).toBe("modelNotFound");
    for (const odd of ["7", "{}", '["m-chat"]', "false"]) {
      expect(driver.route(`{"model":${odd}}`)).toBe(null);
      expect(driver.status).toBe("modelRequired");
    }
  });

  it("routes by the last of two models, and by a model written with escapes", () => {
    const driver = two();
    expect(driver.route('{"model":"m-chat","model":"m-other"}')).toBe("b");
    expect(driver.route('{"model":"m-other","mod\\u0065l":"m-chat"}')).toBe("a");
    expect(driver.route('{"model":"m\\u002dother"}')).toBe("b");
  });

  it("says where the model's name stands in the body, of equal names the last", () => {
    const driver = two();
    for (const [body, name] of [
      ['{"stream":true, "model" : "m-other"}', "m-other"],
      ['{"model":"m-chat","model":"m-other"}', "m-other"],
      ['{"model":"m-other","x":{"model":"y"},"mod\\u0065l":"m\\u002dchat"}', "m\\u002dchat"],
    ] as const) {
      driver.route(body);
      expect(driver.status).toBe("ok");
      expect(body.slice(driver.out[OUT.modelStart], driver.out[OUT.modelEnd])).toBe(name);
    }
    driver.route('{"model":"m-chat","model":7}');
    expect([driver.out[OUT.modelStart], driver.out[OUT.modelEnd]]).toEqual([0, 0]);
  });

  it("says where ids of responses and conversations stand, also in a body that only JSON.parse reads", () => {
    const driver = one();
    const ids = (body: string) => {
      driver.route(body, { path: PATH.responses });
      const { out } = driver;
      return [
        body.slice(out[OUT.previousStart], out[OUT.previousEnd]),
        body.slice(out[OUT.conversationStart], out[OUT.conversationEnd]),
        out[OUT.unusual],
      ];
    };
    expect(ids('{"previous_response_id":"resp_1","conversation":"conv_1"}')).toEqual(["resp_1", "conv_1", 0]);
    expect(ids('{"conversation":{"id":"conv_2"},"previous_response_id":null}')).toEqual(["", "conv_2", 0]);
    const twice = '{"previous_response_id":"resp_1","conversation":{"id":"conv_1","id":"conv_2"},';
    expect(ids(`${twice}"previous_response_id":"resp_2"}`)).toEqual(["resp_2", "conv_2", 1]);
    expect(ids(`${twice}"conversation":null}`)).toEqual(["resp_1", "", 1]);
    const deep = `${"[".repeat(600)}${"]".repeat(600)}`;
    expect(ids(`${twice}"deep":${deep}}`)).toEqual(["", "", 1]);
  });

  it("takes an alias for its model, and says that the name in the body is another", () => {
    const driver = load({
      ...makeSnapshot([
        { class: "chat", engines: [{ id: "a", weight: 1 }] },
        { class: "other", engines: [{ id: "b", weight: 1 }] },
      ]),
      aliases: { fast: "m-other", "m-chat": "m-other", gone: "m-gone" },
    });
    const model = (body: string) => [
      driver.route(body),
      driver.table.models[driver.out[OUT.model]!],
      driver.out[OUT.aliased],
    ];
    expect(model('{"model":"fast"}')).toEqual(["b", "m-other", 1]);
    expect(model('{"model":"f\\u0061st"}')).toEqual(["b", "m-other", 1]);
    expect(model('{"model":"m-other"}')).toEqual(["b", "m-other", 0]);
    // A model's own name means that model.
    expect(model('{"model":"m-chat"}')).toEqual(["a", "m-chat", 0]);
    expect(model('{"model":"gone"}')).toEqual([null, undefined, 0]);
    expect(driver.status).toBe("modelNotFound");
  });

  it("finds a model whose name JSON must escape", () => {
    const driver = load(
      makeSnapshot([{ class: "chat", engines: [{ id: "a", weight: 1 }] }], {
        classes: { chat: { model: 'the "best"\\one' }, more: {} },
      }),
    );
    expect(driver.route(JSON.stringify({ model: 'the "best"\\one' }))).toBe("a");
  });

  it("takes the model's first class in file order all of whose capabilities the request uses", () => {
    const driver = load(
      makeSnapshot(
        [
          { class: "seeing", engines: [{ id: "s", weight: 1 }] },
          { class: "tooled", engines: [{ id: "t", weight: 1 }] },
          { class: "chat", engines: [{ id: "c", weight: 1 }] },
        ],
        {
          classes: {
            seeing: { model: "m-chat", needs: { ...needs, capabilities: ["vision", "tools"] } },
            tooled: { model: "m-chat", needs: { ...needs, capabilities: ["tools"] } },
          },
        },
      ),
    );
    expect(driver.route(chat())).toBe("c");
    expect(driver.route(chat({ tools: [{}] }))).toBe("t");
    expect(driver.route(chat({ tools: [] }))).toBe("c");
    expect(driver.route(chat({ tools: [{}] }, [image]))).toBe("s");
    expect(driver.route(chat({}, [image]))).toBe("c");
  });

  it("takes the class that a trusted header names, needs or not, but not one of another model", () => {
    const driver = load(
      makeSnapshot(
        [
          { class: "chat", engines: [{ id: "c", weight: 1 }] },
          { class: "batch", engines: [{ id: "b", weight: 1 }] },
          { class: "other", engines: [{ id: "o", weight: 1 }] },
        ],
        { classes: { chat: {}, batch: { model: "m-chat", needs: { ...needs, capabilities: ["vision"] } } } },
      ),
    );
    expect(driver.route(chat(), { className: "batch" })).toBe("b");
    expect(driver.className).toBe("batch");
    expect(driver.route(chat(), { className: "other" })).toBe("c");
    expect(driver.route(chat(), { className: "unknown" })).toBe("c");
  });

  it("says how many answers are asked for, and whether they are made in the background", () => {
    const driver = one();
    const asked = (more: object) => {
      driver.route(chat(more));
      return [driver.out[OUT.choices], driver.out[OUT.background]];
    };
    expect(asked({})).toEqual([1, 0]);
    expect(asked({ n: 4, background: true })).toEqual([4, 1]);
    expect(asked({ n: null, background: "true" })).toEqual([1, 0]);
    expect(asked({ n: 2.5 })).toEqual([2, 0]);
  });

  it("sees what each API calls its needs", () => {
    const driver = one();
    const uses = (body: object, path: number = PATH.chat) => {
      driver.route(JSON.stringify(body), { path });
      return driver.out[OUT.needs];
    };
    const shot = { type: "image", source: {} };
    const result = { type: "tool_result", content: [{ type: "text" }, shot] };
    expect(uses({ messages: [{ role: "user", content: [shot] }] }, PATH.messages)).toBe(NEED.vision);
    expect(uses({ messages: [{ role: "user", content: [result] }] }, PATH.messages)).toBe(NEED.vision);
    expect(uses({ tools: [{ name: "f" }], messages: [] }, PATH.messages)).toBe(NEED.tools);
    expect(uses({ output_config: { format: { type: "json_schema" } } }, PATH.messages)).toBe(NEED.jsonSchema);
    expect(uses({ output_format: { type: "json_schema" } }, PATH.messages)).toBe(NEED.jsonSchema);
    expect(uses({ input: [{ role: "user", content: [{ type: "input_image" }] }] }, PATH.responses)).toBe(NEED.vision);
    expect(uses({ input: [{ type: "function_call_output", output: [{ type: "input_image" }] }] })).toBe(NEED.vision);
    expect(uses({ input: [{ content: [{ type: "input_audio" }] }] }, PATH.responses)).toBe(NEED.audio);
    expect(uses({ text: { format: { type: "json_schema" } } }, PATH.responses)).toBe(NEED.jsonSchema);
    expect(uses({ structured_outputs: { regex: "a" } })).toBe(NEED.jsonSchema);
    expect(uses({ structured_outputs: null, output_config: null, thinking: { type: "enabled" } })).toBe(0);
  });

  it("knows by a messages body's thinking that it reasons", () => {
    const driver = load(
      makeSnapshot(
        [
          { class: "thinking", engines: [{ id: "t", weight: 1 }] },
          { class: "chat", engines: [{ id: "c", weight: 1 }] },
        ],
        { classes: { thinking: { model: "m-chat", needs: { ...needs, capabilities: ["reasoning"] } } } },
      ),
    );
    const engine = (thinking: unknown) => driver.route(chat({ thinking }), { path: PATH.messages });
    expect(engine({ type: "enabled", budget_tokens: 1024 })).toBe("t");
    expect(engine({ type: "disabled" })).toBe("c");
    expect(engine(null)).toBe("c");
  });

  it("knows requests to rank by their path", () => {
    const driver = load(
      makeSnapshot(
        [
          { class: "ranks", engines: [{ id: "r", weight: 1 }] },
          { class: "chat", engines: [{ id: "c", weight: 1 }] },
        ],
        { classes: { ranks: { model: "m-chat", needs: { ...needs, capabilities: ["rerank"] } } } },
      ),
    );
    for (const path of [PATH.rerank, PATH.score])
      expect(driver.route('{"model":"m-chat","query":"x"}', { path })).toBe("r");
    expect(driver.route('{"model":"m-chat","query":"x"}', { path: PATH.chat })).toBe("c");
  });

  it("knows an embeddings request by its path", () => {
    const driver = load(
      makeSnapshot(
        [
          { class: "vectors", engines: [{ id: "v", weight: 1 }] },
          { class: "chat", engines: [{ id: "c", weight: 1 }] },
        ],
        { classes: { vectors: { model: "m-chat", needs: { ...needs, capabilities: ["embeddings"] } } } },
      ),
    );
    expect(driver.route('{"model":"m-chat","input":"x"}', { path: PATH.embeddings })).toBe("v");
    expect(driver.route('{"model":"m-chat","input":"x"}')).toBe("c");
  });

  it("keeps a residency: by class where one says it, engine by engine where none does", () => {
    const driver = load(
      makeSnapshot(
        [
          { class: "europe", engines: [{ id: "eu", weight: 1, definition: { residency: "eu" } }] },
          {
            class: "chat",
            engines: [
              { id: "us", weight: 0.5, definition: { residency: "us" } },
              { id: "eu", weight: 0.25, definition: { residency: "eu" } },
              { id: "any", weight: 0.25 },
            ],
          },
        ],
        {
          classes: {
            europe: {
              model: "m-chat",
              needs: { ...needs, residency: ["eu"], capabilities: ["tools"] },
            },
          },
        },
      ),
    );
    for (let i = 0; i < 50; i++) {
      expect(driver.route(chat(), { residency: "us", key: `k${i}` })).toBe("us");
      expect(driver.route(chat(), { residency: "eu", key: `k${i}` })).toBe("eu");
    }
    expect(driver.route(chat({ tools: [{}] }), { residency: "eu" })).toBe("eu");
    expect(driver.className).toBe("europe");
    expect(driver.route(chat({ tools: [{}] }), { residency: "us" })).toBe("us");
    expect(driver.className).toBe("chat");
    expect(driver.route(chat(), { residency: "mars" })).toBe(null);
    expect(driver.status).toBe("noEligibleEngine");
  });

  it("rules engines out one by one by what the body needs beyond its class", () => {
    const able = (...capabilities: ("tools" | "vision" | "audio" | "json_schema")[]) => ({ capabilities });
    const driver = load(
      makeSnapshot([
        {
          class: "chat",
          engines: [
            { id: "none", weight: 0.3, definition: able() },
            { id: "tools", weight: 0.3, definition: able("tools", "json_schema") },
            { id: "eyes", weight: 0.3, definition: able("vision", "audio") },
            { id: "unknown", weight: 0.1 },
          ],
        },
      ]),
    );
    const reached = (body: string) => {
      const engines = new Set<string | null>();
      for (let i = 0; i < 200; i++) engines.add(driver.route(body, { key: `k${i}` }));
      return [...engines].sort();
    };
    expect(reached(chat())).toEqual(["eyes", "none", "tools", "unknown"]);
    expect(reached(chat({ tools: [{}] }))).toEqual(["tools", "unknown"]);
    expect(reached(chat({ response_format: { type: "json_schema" } }))).toEqual(["tools", "unknown"]);
    expect(reached(chat({ response_format: { type: "text" } }))).toEqual(["eyes", "none", "tools", "unknown"]);
    expect(reached(chat({ guided_regex: "a+" }))).toEqual(["tools", "unknown"]);
    expect(reached(chat({}, [image]))).toEqual(["eyes", "unknown"]);
    expect(reached(chat({}, [{ type: "input_audio" }]))).toEqual(["eyes", "unknown"]);
    expect(reached(chat({ tools: [{}] }, [image]))).toEqual(["unknown"]);
    expect(driver.out[OUT.needs]).toBe(NEED.tools | NEED.vision);
  });

  it("refuses by context only what exceeds it by more than half", () => {
    const definition = { maxContextTokens: 1000 };
    const driver = load(makeSnapshot([{ class: "chat", engines: [{ id: "a", weight: 1, definition }] }]));
    const body = chat({ max_tokens: 1 });
    const spent = Math.floor((body.length + 3) / 4);
    expect(driver.route(chat({ max_tokens: 1500 - spent }))).toBe("a");
    expect(driver.out[OUT.contextTokens]).toBe(1500);
    expect(driver.route(chat({ max_tokens: 1501 - spent }))).toBe(null);
    expect(driver.status).toBe("noEligibleEngine");
  });

  it("counts neither a picture's bytes nor a batch of inputs as one context", () => {
    const definition = { maxContextTokens: 1000 };
    const driver = load(makeSnapshot([{ class: "chat", engines: [{ id: "a", weight: 1, definition }] }]));
    const picture = { type: "image_url", image_url: { url: `data:${"A".repeat(20_000)}` } };
    expect(driver.route(chat({}, [picture]))).toBe("a");
    expect(driver.route(chat({}, "A".repeat(20_000)))).toBe(null);
    const input = Array.from({ length: 100 }, () => "word ".repeat(100));
    expect(driver.route(JSON.stringify({ input }), { path: PATH.embeddings })).toBe("a");
    expect(driver.route(JSON.stringify({ input: input.join("") }), { path: PATH.embeddings })).toBe(null);
  });

  it("says so when a class has no cell, or every class of the model asks for what the request doesn't use", () => {
    const driver = load(
      makeSnapshot([{ class: "chat", engines: [{ id: "a", weight: 1 }] }], {
        classes: { chat: { needs: { ...needs, capabilities: ["vision"] } }, empty: {} },
      }),
    );
    expect(driver.route('{"model":"m-empty"}')).toBe(null);
    expect(driver.status).toBe("noEligibleEngine");
    expect(driver.className).toBe("empty");
    expect(driver.route(chat())).toBe(null);
    expect(driver.status).toBe("noEligibleEngine");
    expect(driver.className).toBe(null);
  });

  it("says whether it streams, stores, and is a conversation's first request", () => {
    const driver = one();
    const flags = (body: string, path: number = PATH.chat) => {
      driver.route(body, { path });
      return [driver.out[OUT.stream], driver.out[OUT.store], driver.out[OUT.first]];
    };
    expect(flags(chat({ stream: true }))).toEqual([1, 0, 1]);
    expect(flags(chat({ store: true, stream: "true" }))).toEqual([0, 1, 1]);
    const turns = [
      { role: "user", content: "a" },
      { role: "assistant", content: "b" },
    ];
    expect(flags(JSON.stringify({ messages: turns }))).toEqual([0, 0, 0]);
    expect(flags('{"prompt":"a"}', PATH.completions)).toEqual([0, 0, 0]);
    expect(flags(JSON.stringify({ messages: turns }), PATH.messages)).toEqual([0, 0, 0]);
    expect(flags(chat(), PATH.messages)).toEqual([0, 0, 1]);
    expect(flags(chat(), PATH.countTokens)).toEqual([0, 0, 0]);
    expect(flags('{"input":"a"}', PATH.responses)).toEqual([0, 0, 1]);
    expect(flags(JSON.stringify({ input: turns }), PATH.responses)).toEqual([0, 0, 0]);
    expect(flags('{"input":[{"type":"item_reference","id":"i"}]}', PATH.responses)).toEqual([0, 0, 0]);
    expect(flags('{"input":"a","previous_response_id":"r"}', PATH.responses)).toEqual([0, 0, 0]);
    expect(flags('{"input":"a","conversation":{"id":"c"}}', PATH.responses)).toEqual([0, 0, 0]);
  });
});
