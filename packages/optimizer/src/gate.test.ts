import { type Fleet, parseClusterSnapshot, type StoredPublication } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { inputsOf, threeClusters } from "./fleet.fixture.ts";
import { plan } from "./plan.ts";
import type { Plan, PlanInputs } from "./plan-types.ts";

const NO_LIMIT = { deadlineMs: null };
const DEMAND = { a: 90, b: 120, c: 40 };

/** As a store gives it back: through JSON. */
function stored(done: Plan): StoredPublication {
  const { clusters, problem } = done.publication!;
  return {
    version: 1,
    epoch: 1,
    clusters: new Map([...clusters].map(([name, each]) => [name, parseClusterSnapshot(JSON.stringify(each))])),
    problem: JSON.parse(JSON.stringify(problem)),
  };
}

function scaled(fleet: Fleet, factors: { a?: number; b?: number; c?: number }): PlanInputs {
  const demandRps = Object.fromEntries(
    Object.entries(DEMAND).map(([name, rps]) => [name, { chat: rps * (factors[name as keyof typeof DEMAND] ?? 1) }]),
  );
  return inputsOf(fleet, { demandRps });
}

describe("the gate", () => {
  it("holds the present weights while demand stands still, and moves nothing", async () => {
    const inputs = inputsOf(await threeClusters());
    const previous = stored(plan(inputs, null, null, NO_LIMIT));
    const next = plan(inputs, previous, null, NO_LIMIT);
    expect(next).toMatchObject({ status: "held", message: "", publication: null, gate: { held: true } });
    expect(next.gate.why).toBe("less than 0.001 ms a request may be gained");
    expect(next.gate.certificate!.gapMs).toBeLessThan(0.01);
    expect(next.gate.certificate!.gapMs).toBeGreaterThanOrEqual(-1e-9);
  });

  it("proves a common fall of demand harmless, which the old prices as they stand would not", async () => {
    const fleet = await threeClusters();
    const previous = stored(plan(inputsOf(fleet), null, null, NO_LIMIT));
    // 2 % less everywhere: prices near full engines fall by some 100 ms.
    const lower = plan(scaled(fleet, { a: 0.98, b: 0.98, c: 0.98 }), previous, null, NO_LIMIT);
    const solved = plan(
      scaled({ ...fleet, policy: { ...fleet.policy, gateMs: 0 } }, { a: 0.98, b: 0.98, c: 0.98 }),
      previous,
      null,
      NO_LIMIT,
    );
    const lossMs = lower.gate.certificate!.objectiveMs - solved.publication!.clusters.get("a")!.certificate.objectiveMs;
    // What is claimed as a loss is at least the true one, and not much more.
    expect(lower.gate.certificate!.gapMs).toBeGreaterThanOrEqual(lossMs - 1e-6);
    expect(lower.gate.certificate!.gapMs).toBeLessThan(lossMs + 0.01 * lower.gate.certificate!.objectiveMs);
  });

  it("opens when demand moves so far that a solve may gain more than gateMs, and says how much", async () => {
    const fleet = await threeClusters();
    const previous = stored(plan(inputsOf(fleet), null, null, NO_LIMIT));
    const inputs = scaled(fleet, { b: 0.8 });
    const next = plan(inputs, previous, null, NO_LIMIT);
    expect(next.status).toBe("solved");
    expect(next.gate.why).toMatch(/^[\d.]+ ms a request may be gained$/);
    const gainMs = next.gate.certificate!.objectiveMs - next.publication!.clusters.get("a")!.certificate.objectiveMs;
    expect(gainMs).toBeGreaterThan(0.5);
    expect(next.gate.certificate!.gapMs).toBeGreaterThanOrEqual(gainMs);
    // The same with a wide gate holds.
    const wide = { ...inputs, fleet: { ...fleet, policy: { ...fleet.policy, gateMs: 1000 } } };
    expect(plan(wide, previous, null, NO_LIMIT).status).toBe("held");
  });

  /** Demand as measured with this much uncertainty in every cell. */
  const measured = (inputs: PlanInputs, part: number): PlanInputs => ({
    ...inputs,
    demandDeviationRps: new Map([...inputs.demandRps].map(([cell, rps]) => [cell, part * rps])),
  });

  it("holds what chance in measuring demand explains, says so, and says the same again", async () => {
    const fleet = await threeClusters();
    const previous = stored(plan(inputsOf(fleet), null, null, NO_LIMIT));
    const inputs = scaled(fleet, { b: 0.9, c: 1.05 });
    expect(plan(inputs, previous, null, NO_LIMIT).status).toBe("solved");
    expect(plan(measured(inputs, 0.001), previous, null, NO_LIMIT).status).toBe("solved");
    const next = plan(measured(inputs, 0.08), previous, null, NO_LIMIT);
    expect(next.status).toBe("held");
    expect(next.gate.why).toMatch(
      /ms a request may be gained, no more than chance in measuring demand makes of nothing$/,
    );
    expect(plan(measured(inputs, 0.08), previous, null, NO_LIMIT).gate).toEqual(next.gate);
  });

  it("opens when demand moves beyond chance, and for work that an engine can't hold whatever the chance", async () => {
    const fleet = await threeClusters();
    const previous = stored(plan(inputsOf(fleet), null, null, NO_LIMIT));
    expect(plan(measured(scaled(fleet, { b: 0.7 }), 0.04), previous, null, NO_LIMIT).status).toBe("solved");
    const over = plan(measured(scaled(fleet, { a: 1.4, b: 0.6 }), 0.5), previous, null, NO_LIMIT);
    expect(over.gate.why).toMatch(/has more work than it can hold/);
  });

  it("judges chance around an operator's pin as well", async () => {
    const fleet = await threeClusters();
    const pins = [
      { cluster: "b", class: "chat", weights: { "engine-b": 0.5, "engine-c": 0.5 }, until: "2099-01-01T00:00:00.000Z" },
    ];
    const previous = stored(plan({ ...inputsOf(fleet), pins }, null, null, NO_LIMIT));
    const inputs = { ...scaled(fleet, { a: 0.97, c: 1.02 }), pins };
    expect(plan(inputs, previous, null, NO_LIMIT).status).toBe("solved");
    expect(plan(measured(inputs, 0.05), previous, null, NO_LIMIT).status).toBe("held");
  });

  it("names no gain below zero where a pin's rings round to slots in its favour", async () => {
    const thirds = { "engine-a": 0.333, "engine-b": 0.333, "engine-c": 0.334 };
    const pins = [{ cluster: "b", class: "chat", weights: thirds, until: "2099-01-01T00:00:00.000Z" }];
    const inputs = { ...inputsOf(await threeClusters()), pins };
    const { gate } = plan(inputs, stored(plan(inputs, null, null, NO_LIMIT)), null, NO_LIMIT);
    expect(gate.certificate!.gapMs).toBeLessThan(0);
    expect(gate).toMatchObject({ held: true, why: "less than 0.001 ms a request may be gained" });
  });

  it("solves every time with a gate of 0", async () => {
    const fleet = await threeClusters("{ headroom: 0, headroomMs: 0, gateMs: 0 }");
    const previous = stored(plan(inputsOf(fleet), null, null, NO_LIMIT));
    expect(plan(inputsOf(fleet), previous, null, NO_LIMIT).status).toBe("solved");
  });

  it.each([null, "lost", {}, { format: 1, engines: ["e"], priceMs: [] }])(
    "opens, and throws nothing, when the last problem is %j",
    async (problem) => {
      const inputs = inputsOf(await threeClusters());
      const previous = { ...stored(plan(inputs, null, null, NO_LIMIT)), problem };
      const next = plan(inputs, previous, null, NO_LIMIT);
      expect(next).toMatchObject({ status: "solved", gate: { why: "the publication has no problem" } });
    },
  );

  const changes: readonly { what: string; why: RegExp; of: (inputs: PlanInputs) => PlanInputs }[] = [
    {
      what: "an engine lost",
      why: /engine-c was lost or came back/,
      of: ({ fleet }) => inputsOf(fleet, { engines: { "engine-c": { readyReplicas: 0 } } }),
    },
    {
      what: "an engine draining",
      why: /engine-c was lost or came back/,
      of: ({ fleet }) => inputsOf(fleet, { engines: { "engine-c": { adminState: "draining" } } }),
    },
    {
      what: "more work than an engine holds",
      why: /engine-a has more work than it can hold/,
      of: ({ fleet }) => inputsOf(fleet, { demandRps: { a: { chat: 130 }, b: { chat: 60 } } }),
    },
    {
      what: "a replica more",
      why: /defined otherwise/,
      of: ({ fleet }) => inputsOf(fleet, { engines: { "engine-a": { readyReplicas: 2 } } }),
    },
    {
      what: "an engine that moved to another address",
      why: /defined otherwise/,
      of: (inputs) => {
        const engines = new Map(inputs.fleet.engines);
        engines.set("engine-a", { ...engines.get("engine-a")!, url: "http://elsewhere.example" });
        return { ...inputs, fleet: { ...inputs.fleet, engines } };
      },
    },
    {
      what: "an engine gone",
      why: /came or went/,
      of: (inputs) => {
        const engines = new Map(inputs.fleet.engines);
        engines.delete("engine-c");
        return { ...inputs, fleet: { ...inputs.fleet, engines } };
      },
    },
    {
      what: "a class that may not go as far",
      why: /eligibility changed/,
      of: (inputs) => {
        const chat = inputs.fleet.classes.get("chat")!;
        const near = { ...chat, needs: { ...chat.needs, networkMs: 100 } };
        return { ...inputs, fleet: { ...inputs.fleet, classes: new Map([["chat", near]]) } };
      },
    },
    {
      what: "another number of gateways",
      why: /the number of gateways of cluster a changed/,
      of: (inputs) => ({ ...inputs, gateways: new Map([["a", 3]]) }),
    },
    {
      what: "another number of slots",
      why: /no ring of this many slots/,
      of: (inputs) => ({ ...inputs, fleet: { ...inputs.fleet, policy: { ...inputs.fleet.policy, slots: 1024 } } }),
    },
  ];

  it.each(changes)("opens for $what, however little a solve may gain", async ({ of, why }) => {
    const fleet = await threeClusters("{ headroom: 0, headroomMs: 0, gateMs: 1000000 }");
    const inputs = inputsOf(fleet);
    const previous = stored(plan(inputs, null, null, NO_LIMIT));
    expect(plan(inputs, previous, null, NO_LIMIT).status).toBe("held");
    const next = plan(of(inputs), previous, null, NO_LIMIT);
    expect(next.gate.why).toMatch(why);
    expect(next.status).toBe("solved");
  });

  it("holds a plan that sheds while its demand stands still, and opens when what it sheds could be served", async () => {
    const fleet = await threeClusters();
    const much = scaled(fleet, { a: 1.3, b: 1.3, c: 1.3 });
    const first = plan(much, null, null, NO_LIMIT);
    expect(first.publication!.clusters.get("a")!.cells[0]!.shed).toBeGreaterThan(0.05);
    expect(plan(much, stored(first), null, NO_LIMIT).status).toBe("held");
    const next = plan(scaled(fleet, { a: 1.29, b: 1.29, c: 1.29 }), stored(first), null, NO_LIMIT);
    expect(next.status).toBe("solved");
    expect(next.gate.certificate!.gapMs).toBeGreaterThan(100);
  });

  it("keeps the present weights when a solve ends too early to better them", async () => {
    const fleet = await threeClusters("{ headroom: 0, headroomMs: 0, gateMs: 0.000001 }");
    const previous = stored(plan(inputsOf(fleet), null, null, NO_LIMIT));
    const cancel = new Uint32Array(new SharedArrayBuffer(4)).fill(1);
    const next = plan(scaled(fleet, { b: 1.001 }), previous, null, { deadlineMs: 0, pivots: 0, cancel });
    expect(next.gate.held).toBe(false);
    expect(["held", "solved"]).toContain(next.status);
    if (next.status === "held") expect(next.publication).toBeNull();
  });
});
