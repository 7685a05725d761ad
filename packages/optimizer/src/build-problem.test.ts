import { DEMAND_FLOOR_RPS, evaluateCurves } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { type BuildOptions, buildProblem } from "./build-problem.ts";
import { leftMarginalAt, marginalAt } from "./engine-cost.ts";
import { EXAMPLE_PROFILE, fleetOf, inputsOf, threeClusters } from "./fleet.fixture.ts";
import { cellKey, type PlanInputs } from "./plan-types.ts";

function build(inputs: PlanInputs, options: BuildOptions = { evenLoadMs: 0 }) {
  const built = buildProblem(inputs, options);
  if (!built.ok) throw new Error(`${built.status}: ${built.message}`);
  return built;
}

const one = (classes: string, engine = "", policy = "{}") =>
  fleetOf(
    `
clusters: { a: { region: r } }
engines:
  e: { url: "http://e.example", region: r, models: [m], profile: p, replicas: 2 ${engine} }
  f: { url: "http://f.example", region: s, models: [m], profile: p }
classes: ${classes}
network: { file: rtt.csv }
profiles: { p: { file: p.yaml } }
policy: ${policy}
`,
    { "p.yaml": EXAMPLE_PROFILE, "rtt.csv": "from,to,rtt_ms\na,r,1\na,s,30\n" },
  );

describe("costs and curves", () => {
  it("is rtt + TTFT at this prompt's length + tokens × TBOT, over work", async () => {
    const fleet = await one("{ short: { model: m, work: 0.5, promptTokens: 112, outputTokens: 100 } }");
    const { problem, index } = build(inputsOf(fleet));
    // 42 + 0.06·(112 − 512) + 100·9.1 = 928 ms, at 1 and 30 ms.
    expect([...index.arcServiceMs]).toEqual([expect.closeTo(928, 9), expect.closeTo(928, 9)]);
    expect([...problem.arcCostMs]).toEqual([expect.closeTo(929 / 0.5, 9), expect.closeTo(958 / 0.5, 9)]);
  });

  it("never takes a short prompt to answer before it arrives", async () => {
    const profile = EXAMPLE_PROFILE.replace("prefillMsPerTok: 0.06", "prefillMsPerTok: 0.6");
    const fleet = await fleetOf(
      `
clusters: { a: { region: r } }
engines: { e: { url: "http://e.example", region: r, models: [m], profile: p } }
classes: { tiny: { model: m, promptTokens: 0, outputTokens: 0, work: 1 } }
profiles: { p: { file: p.yaml } }
`,
      { "p.yaml": profile },
    );
    expect([...build(inputsOf(fleet)).index.arcServiceMs]).toEqual([0]);
  });

  it("has the reference request's Q and marginals", async () => {
    const fleet = await one("{ chat: { model: m, work: 1 } }");
    const { problem } = build(inputsOf(fleet));
    const curves = { ...problem.curves, headroom: 0, headroomMs: 0 };
    const capacity = curves.capacityWps[0]!;
    for (const [rho, ms] of [
      [0.5, 504.4],
      [0.9, 1709.6],
      [0.94, 1948.5],
    ] as const) {
      const out = { value: new Float64Array(2), slope: new Float64Array(2), curvature: new Float64Array(2) };
      evaluateCurves(curves, Float64Array.of(rho * capacity, 0), out);
      expect(Math.abs(out.value[0]! / (rho * capacity) - ms)).toBeLessThan(0.05);
    }
    expect(Math.abs(leftMarginalAt(curves, 0, 0.9 * capacity) - 4893.8)).toBeLessThan(0.05);
    expect(Math.abs(marginalAt(curves, 0, 0.9 * capacity) - 7085.9)).toBeLessThan(0.05);
  });

  it("weighs Q by the requests and tokens per unit of work of the demand that may come, not of what is routed", async () => {
    const fleet = await one(
      "{ x: { model: m, work: 1, outputTokens: 256 }, y: { model: m, work: 0.25, outputTokens: 40, needs: { networkMs: 10 } } }",
    );
    const { problem } = build(inputsOf(fleet, { demandRps: { a: { x: 2, y: 8 } } }));
    const { knotStart, knotRho, knotMs } = problem.curves;
    const at = (engine: number, rho: number) => {
      const start = knotStart[engine]!;
      return knotMs[start + knotRho.subarray(start, knotStart[engine + 1]!).indexOf(rho)]!;
    };
    // Engine e may get both: 10 requests, 832 tokens and 4 units of work a second. Engine f is too far for y.
    expect(at(0, 0.5)).toBeCloseTo((10 / 4) * 18 + (832 / 4) * 1.9, 9);
    expect(at(1, 0.5)).toBeCloseTo(18 + 256 * 1.9, 9);
  });

  it("adds half a millisecond at full load in production, so that equal engines share", async () => {
    const fleet = await one("{ chat: { model: m, work: 1 } }");
    const [plain, even] = [build(inputsOf(fleet)), build(inputsOf(fleet), {})];
    for (const [knot, rho] of plain.problem.curves.knotRho.entries())
      expect(even.problem.curves.knotMs[knot]! - plain.problem.curves.knotMs[knot]!).toBeCloseTo(0.5 * rho, 9);
  });
});

describe("capacity", () => {
  it.each([
    { live: {}, capacity: 25, why: "as the fleet file says" },
    { live: { readyReplicas: 1 }, capacity: 12.5, why: "by ready replicas" },
    { live: { severity: 0.2 }, capacity: 20, why: "less the failing part" },
    { live: { readyReplicas: 0 }, capacity: 0, why: "none without a ready replica" },
    { live: { adminState: "draining" as const }, capacity: 0, why: "none when draining" },
    { live: { adminState: "out" as const }, capacity: 0, why: "none when out" },
  ])("is $capacity units/s $why", async ({ live, capacity }) => {
    const fleet = await one("{ chat: { model: m, work: 1 } }");
    const { problem } = build(inputsOf(fleet, { engines: { e: live } }));
    expect(problem.curves.capacityWps[0]).toBeCloseTo(capacity, 12);
  });

  it("is none for an engine that the fleet file drains", async () => {
    const fleet = await one("{ chat: { model: m, work: 1 } }", ", adminState: draining");
    expect(build(inputsOf(fleet)).problem.curves.capacityWps[0]).toBe(0);
  });
});

describe("the price of shedding", () => {
  it("is 60,000 ms at least, times one more for each distinct lower priority in the fleet", async () => {
    const fleet = await one(
      "{ low: { model: m, work: 1, priority: -5 }, mid: { model: m, work: 1, priority: 0 }, mid2: { model: m, work: 1, priority: 0 }, high: { model: m, work: 1, priority: 9 } }",
    );
    const { problem } = build(inputsOf(fleet));
    expect([...problem.shedMs]).toEqual([60_000, 120_000, 120_000, 180_000]);
    expect(problem).toMatchObject({ shedStepMs: 300, shedSteps: 20 });
  });

  it("is twice the dearest unit that an engine with capacity can serve, where that is more", async () => {
    const fleet = await one("{ chat: { model: m, work: 1 } }", "", "{ headroom: 0.06, headroomMs: 40000 }");
    const dearest = (engines: Parameters<typeof inputsOf>[1]) => {
      const { problem, index } = build(inputsOf(fleet, engines));
      const out = { value: new Float64Array(2), slope: new Float64Array(2), curvature: new Float64Array(2) };
      evaluateCurves(problem.curves, problem.curves.capacityWps, out);
      return {
        p0: index.leastShedMs,
        near: problem.arcCostMs[0]! + out.slope[0]!,
        far: problem.arcCostMs[1]! + out.slope[1]!,
      };
    };
    const both = dearest({});
    expect(both.far).toBeGreaterThan(both.near);
    expect(both.p0).toBeCloseTo(2 * both.far, 6);
    // The far engine drained: it no longer sets the price.
    const nearOnly = dearest({ engines: { f: { adminState: "draining" } } });
    expect(nearOnly.p0).toBeCloseTo(2 * nearOnly.near, 6);
  });
});

describe("cells", () => {
  it("have a floor of demand", async () => {
    const fleet = await threeClusters();
    const { problem } = build({ ...inputsOf(fleet), demandRps: new Map([[cellKey("b", "chat"), 7]]) });
    expect([...problem.demandWps]).toEqual([DEMAND_FLOOR_RPS, 7, DEMAND_FLOOR_RPS]);
  });

  it("are left out, with the reason, where no engine may serve them", async () => {
    const fleet = await one("{ near: { model: m, work: 1, needs: { networkMs: 5 } }, chat: { model: m, work: 1 } }");
    const drained = { ...fleet, clusters: new Map([["z", { name: "z", region: "z" }]]) };
    const { index } = build(inputsOf(drained));
    expect(index.cells.map(({ spec }) => spec.name)).toEqual(["chat"]);
    expect(index.leftOut).toEqual([
      {
        cluster: "z",
        requestClass: "near",
        why: ["e: is 100 ms away, 5 ms allowed", "f: is 100 ms away, 5 ms allowed"],
      },
    ]);
  });
});

describe("inputs that can't be a problem", () => {
  it.each([
    {
      what: "demand that is no number",
      change: { demandRps: { a: { chat: Number.NaN } } },
      status: "not-finite",
      names: "demandRps of a chat is NaN",
    },
    {
      what: "infinite demand",
      change: { demandRps: { a: { chat: 1 / 0 } } },
      status: "not-finite",
      names: "demandRps of a chat is Infinity",
    },
    {
      what: "negative demand",
      change: { demandRps: { a: { chat: -1 } } },
      status: "invalid",
      names: "demandRps of a chat is -1",
    },
    {
      what: "severity above 1",
      change: { engines: { "engine-b": { severity: 1.5 } } },
      status: "invalid",
      names: "severity of engine-b is 1.5",
    },
    {
      what: "negative replicas",
      change: { engines: { "engine-b": { readyReplicas: -1 } } },
      status: "invalid",
      names: "readyReplicas of engine-b is -1",
    },
  ])("are answered by name: $what", async ({ change, status, names }) => {
    const built = buildProblem(inputsOf(await threeClusters(), change));
    expect(built).toMatchObject({ ok: false, status });
    expect(built.ok ? "" : built.message).toContain(names);
  });
});
