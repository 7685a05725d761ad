import { packSnapshot } from "@guidevane/core";
import {
  compileTable,
  createRouterFactory,
  ruledOutByPlan,
  ruledOutNow,
  SlotRegistry,
  STATE,
  setEngine,
} from "@guidevane/selector";
import { expect, test } from "vitest";
import { Routing } from "./routing.ts";
import { fleetOf } from "./testing/fleet.ts";
import { snapshotOf } from "./testing/snapshot.ts";

test("What rules out engines is the same of many, chunk by chunk, and stops where enough are named.", async () => {
  const ids = Array.from({ length: 300 }, (_, at) => `e${at}`);
  const fleet = await fleetOf(Object.fromEntries(ids.map((id) => [id, `http://${id}.test`])));
  // The plan gives the even ones nothing.
  const odd = ids.filter((_, at) => at % 2 === 1);
  const base = snapshotOf(fleet, { version: 1 }, Object.fromEntries(odd.map((id) => [id, 1 / odd.length])));
  const snapshot = { ...base, cells: base.cells.map((cell) => ({ ...cell, reserves: [] })) };
  const registry = new SlotRegistry();
  const { table } = compileTable(snapshot, registry);
  const compiled = {
    number: 0,
    packed: packSnapshot(snapshot),
    source: "control",
    table,
    retryRows: new Map(),
  } as const;
  const routing = new Routing(compiled, registry.state, createRouterFactory("ts"), () => {});
  setEngine(registry.state, registry.slotOf("e299")!, STATE.out);

  const [className] = Object.keys(snapshot.classes);
  const plain = { needs: 0, contextTokens: 0, residency: null, tried: new Set(["e1"]) };
  for (const needs of [plain, { ...plain, residency: "eu" }]) {
    const whole = ruledOutNow(ruledOutByPlan(snapshot, className!, needs), needs.tried, (id) =>
      Atomics.load(registry.state.engines, registry.slotOf(id)!),
    );
    for (let call = 0; call < 2; call++) {
      expect(routing.ruledOut(className!, needs)).toEqual(whole);
      expect(routing.ruledOut(className!, needs, 80)).toEqual(whole.slice(0, 80));
    }
  }
  expect(routing.ruledOut(className!, plain)).toHaveLength(150 + 2);
});
