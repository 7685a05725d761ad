import { describe, expect, it } from "vitest";
import { describeRouters } from "./driver.fixture.ts";
import { NEED, OUT } from "./router.ts";
import { type RequestNeeds, type RuledOut, ruledOutByPlan, ruledOutNow } from "./ruled-out.ts";
import { STATE, STATE_HEALTHY } from "./shared-state.ts";
import { makeSnapshot } from "./snapshot.fixture.ts";

const snapshot = makeSnapshot([
  {
    class: "chat",
    engines: [
      { id: "blind", weight: 0.2, definition: { capabilities: ["tools"] } },
      { id: "short", weight: 0.2, definition: { maxContextTokens: 1000 } },
      { id: "abroad", weight: 0.2, definition: { residency: "us" } },
      { id: "tried", weight: 0.2, definition: { residency: "eu" } },
      { id: "drained", weight: 0.1, definition: { residency: "eu" } },
      { id: "dead", weight: 0.1, definition: { residency: "eu" } },
      { id: "spare", weight: 0, definition: { residency: "eu" } },
    ],
  },
  { class: "other", engines: [{ id: "alien", weight: 1 }] },
]);

const nothing = { needs: 0, contextTokens: 0, residency: null, tried: new Set<string>() };
const healthy = () => STATE_HEALTHY;

function ruledOut(
  of: typeof snapshot,
  className: string,
  request: RequestNeeds,
  stateOf: (engine: string) => number,
): RuledOut[] {
  return ruledOutNow(ruledOutByPlan(of, className, request), request.tried, stateOf);
}

it("names what ruled each engine out, the first thing that did", () => {
  const request = {
    needs: NEED.vision,
    contextTokens: 1501,
    residency: "eu",
    tried: new Set(["tried"]),
  };
  const states: Record<string, number> = { drained: STATE.draining, dead: STATE.out };
  const found = ruledOut(snapshot, "chat", request, (id) => states[id] ?? STATE_HEALTHY);
  expect(Object.fromEntries(found.map(({ engine, message }) => [engine, message]))).toEqual({
    blind: "lacks vision",
    short: "holds 1000 of about 1501 tokens",
    abroad: "residency us is not eu",
    tried: "was tried",
    drained: "is draining",
    dead: "is out",
    alien: "does not serve m-chat",
  });
  expect(found.find(({ engine }) => engine === "blind")?.by).toBe("capability");
});

it("names nothing for a class that it doesn't know, and no engine that may serve", () => {
  expect(ruledOut(snapshot, "gone", nothing, healthy)).toEqual([]);
  expect(ruledOut(snapshot, "other", nothing, healthy).map(({ engine }) => engine)).not.toContain("alien");
});

it("follows engines' states over one list of what the plan rules out", () => {
  const byPlan = ruledOutByPlan(snapshot, "chat", nothing);
  const states: Record<string, number> = {};
  const stateOf = (id: string) => states[id] ?? STATE_HEALTHY;
  for (const [id, state, ...away] of [
    ["drained", STATE.draining, "drained", "alien"],
    ["dead", STATE.out, "drained", "dead", "alien"],
    ["drained", STATE_HEALTHY, "dead", "alien"],
  ] as const) {
    states[id] = state;
    expect(ruledOutNow(byPlan, nothing.tried, stateOf).map(({ engine }) => engine)).toEqual(away);
  }
});

it("says so when the plan gives an engine none of the class", () => {
  const made = makeSnapshot([{ class: "chat", engines: [{ id: "a", weight: 1 }] }]);
  const withIdle = { ...made, engines: { ...made.engines, idle: made.engines.a! } };
  expect(ruledOut(withIdle, "chat", nothing, healthy)).toEqual([
    { engine: "idle", by: "plan", message: "the plan gives it none of this class" },
  ]);
  const drained = (id: string) => (id === "idle" ? STATE.draining : STATE_HEALTHY);
  expect(ruledOut(withIdle, "chat", nothing, drained)).toEqual([
    { engine: "idle", by: "draining", message: "is draining" },
  ]);
});

describeRouters(describe, "ruledOut", (load) => {
  it("rules out all engines exactly when the router finds none", () => {
    const driver = load(snapshot);
    const ids = Object.keys(snapshot.engines);
    for (let round = 0; round < 300; round++) {
      const down = ids.filter((_, i) => ((round * 2654435761) >>> (i + 5)) % 3 !== 0);
      for (const id of ids) driver.setState(id, down.includes(id) ? STATE.out : STATE_HEALTHY);
      const residency = [null, "eu", "us"][round % 3]!;
      const tools = round % 2 === 0 ? [{}] : [];
      const max_tokens = round % 5 === 0 ? 2000 : 1;
      const content = round % 7 === 0 ? [{ type: "image" }] : "hi";
      const body = JSON.stringify({ model: "m-chat", tools, max_tokens, messages: [{ role: "user", content }] });
      const engine = driver.route(body, residency === null ? {} : { residency });
      const request = {
        needs: driver.out[OUT.needs]!,
        contextTokens: driver.out[OUT.contextTokens]!,
        residency,
        tried: new Set<string>(),
      };
      const state = (id: string) => driver.registry.state.engines[driver.slot(id)]!;
      const out = ruledOut(snapshot, "chat", request, state).map((each) => each.engine);
      if (engine === null) expect(out.sort()).toEqual([...ids].sort());
      else expect(out).not.toContain(engine);
    }
  });
});
