import type { Fleet, Publication, StoredPublication } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { diff, type ExplainedMove } from "./diff.ts";
import { INPUT_KINDS } from "./diff-side.ts";
import { inputsOf, threeClusters } from "./fleet.fixture.ts";
import { plan } from "./plan.ts";
import type { PlanInputs } from "./plan-types.ts";

const POLICY = "{ headroom: 0, headroomMs: 0, gateMs: 0 }";

function publish(inputs: PlanInputs, previous: StoredPublication | null): StoredPublication {
  const { publication } = plan(inputs, previous, null, { deadlineMs: null });
  return { ...publication!, version: (previous?.version ?? 0) + 1, epoch: 1 };
}

function sums({ parts, before, after }: ExplainedMove): void {
  const sum = Object.values(parts).reduce((total, part) => total + part, 0);
  expect(sum).toBeCloseTo(after - before, 12);
}

async function both(change: (fleet: Fleet) => PlanInputs): Promise<[Publication, Publication]> {
  const fleet = await threeClusters(POLICY);
  const first = publish(inputsOf(fleet), null);
  return [first, publish(change(fleet), first)];
}

describe("diff", () => {
  it("of a publication with itself says that nothing changed", async () => {
    const first = publish(inputsOf(await threeClusters(POLICY)), null);
    const { changed, weights, from, to } = diff(first, first);
    expect(weights).toEqual([]);
    expect(Object.values(changed).flat()).toEqual([]);
    expect([from, to]).toEqual([1, 1]);
  });

  it.each([
    [
      "demand",
      (fleet: Fleet) => inputsOf(fleet, { demandRps: { b: { chat: 130 } } }),
      /b chat: 130 requests\/s, was 120/,
    ],
    [
      "capacity",
      (fleet: Fleet) => inputsOf(fleet, { engines: { "engine-c": { severity: 0.2 } } }),
      /engine-c holds 64 units\/s, was 80/,
    ],
    [
      "network",
      (fleet: Fleet) => {
        const rttMs = new Map(fleet.network.rttMs);
        for (const pair of rttMs.keys()) if (rttMs.get(pair) === 60) rttMs.set(pair, 30);
        return inputsOf({ ...fleet, network: { ...fleet.network, rttMs } });
      },
      /engine-c is 30 ms from b, was 60/,
    ],
    [
      "work",
      (fleet: Fleet) => {
        const chat = fleet.classes.get("chat")!;
        return inputsOf({ ...fleet, classes: new Map([["chat", { ...chat, work: 0.9 }]]) });
      },
      /b chat: 0\.9 units a request, was 1/,
    ],
    [
      "eligibility",
      (fleet: Fleet) => {
        const engines = new Map(fleet.engines);
        engines.set("engine-b2", { ...engines.get("engine-b")!, id: "engine-b2", capacityWps: 20 });
        return inputsOf({ ...fleet, engines });
      },
      /engine engine-b2 is new/,
    ],
  ] as const)("lays a move at the door of %s alone where that alone changed", async (kind, change, sentence) => {
    const [before, after] = await both(change);
    const { changed, weights } = diff(before, after);
    expect(changed[kind].join("\n")).toMatch(sentence);
    for (const other of INPUT_KINDS) if (other !== kind) expect(changed[other], other).toEqual([]);
    expect(weights.length).toBeGreaterThan(0);
    for (const move of weights) {
      sums(move);
      // What is left are roundings to slots.
      expect(Math.abs(move.parts.rest)).toBeLessThan(1 / 4096);
      expect(move.parts[kind]).toBeCloseTo(move.after - move.before, 3);
      for (const other of INPUT_KINDS) if (other !== kind) expect(move.parts[other]).toBe(0);
    }
  });

  it("divides a move between inputs that changed together, the parts summing to the whole", async () => {
    const [before, after] = await both((fleet) =>
      inputsOf(fleet, { demandRps: { b: { chat: 110 } }, engines: { "engine-c": { severity: 0.1 } } }),
    );
    const { weights } = diff(before, after);
    const away = weights.find(({ cluster, engine }) => cluster === "b" && engine === "engine-c")!;
    expect(away.parts.capacity).toBeLessThan(-0.01);
    expect(away.parts.demand).toBeLessThan(-0.01);
    expect(Math.abs(away.parts.rest)).toBeLessThan(1 / 4096);
    for (const move of weights) sums(move);
  });

  it("puts what no input explains under rest", async () => {
    const fleet = await threeClusters(POLICY);
    const first = publish(inputsOf(fleet), null);
    const until = "2030-01-01T00:00:00Z";
    const pins = [{ cluster: "a", class: "chat", weights: { "engine-a": 0.5, "engine-c": 0.5 }, until }];
    const pinned = publish({ ...inputsOf(fleet, { demandRps: { a: { chat: 40 } } }), pins }, first);
    const { weights } = diff(first, pinned);
    const moved = weights.find(({ cluster, engine }) => cluster === "a" && engine === "engine-c")!;
    expect(moved.after).toBe(0.5);
    expect(moved.parts.rest).toBeCloseTo(0.5, 3);
    for (const move of weights) sums(move);
  });
});
