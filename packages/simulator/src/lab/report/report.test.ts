import { describe, expect, it } from "vitest";
import { twoRegions } from "../lab.fixture.ts";
import { runLab } from "../lab.ts";
import { POLICIES } from "../policies/index.ts";
import { syntheticWorkload } from "../synthetic.ts";
import { ENDED } from "../tally.ts";
import { tune } from "../tune.ts";
import { figuresOf, type PolicyFigures } from "./figures.ts";
import { percentile } from "./percentile.ts";
import { reportOf } from "./report.ts";
import { reportPage } from "./report-page.ts";
import { REPORT_SCRIPT } from "./report-script.ts";
import { verdictOf } from "./verdict.ts";

const fleet = await twoRegions;
const slo = { ttftMs: 500, tbotMs: 20 };
const workload = syntheticWorkload({ fleet, seed: 3, seconds: 40, load: 0.5, turns: 3, thinkMs: 1000 });
const policyOf = (name: string) => POLICIES.find((each) => each.name === name)!;
const optionsOf = (name: string) => ({ fleet, workload, policy: policyOf(name), seed: 3, kvTokens: 200_000 });

describe("the figures of a run", () => {
  const run = runLab(optionsOf("guidevane"));
  const figures = figuresOf(run, policyOf("guidevane"), slo);
  const { tally } = run;
  const rows = [...tally.arrivedMs.keys()].filter((row) => tally.arrivedMs[row]! >= workload.settleMs);

  it("are those of a plain count over what came after settling", () => {
    const e2e = rows.map((row) => tally.e2eMs[row]!).sort((a, b) => a - b);
    expect(figures.requests).toBe(rows.length);
    expect(figures.e2e!.meanMs).toBeCloseTo(e2e.reduce((sum, each) => sum + each, 0) / e2e.length, 6);
    expect(figures.e2e!.p95Ms).toBe(e2e[Math.ceil(0.95 * e2e.length) - 1]);
    const good = rows.filter(
      (row) =>
        tally.ended[row] === ENDED.answered &&
        tally.ttftMs[row]! <= slo.ttftMs &&
        (tally.e2eMs[row]! - tally.ttftMs[row]!) / workload.outputTokens[row]! <= slo.tbotMs,
    );
    expect(figures.goodPart).toBeCloseTo(good.length / rows.length, 9);
    const west = rows.filter((row) => workload.cluster[row] === 0 && tally.engine[row]! > 0).length;
    const east = rows.filter((row) => workload.cluster[row] === 1 && tally.engine[row] === 0).length;
    expect(figures.crossRegionPart).toBeCloseTo((west + east) / rows.length, 9);
  });

  it("have a timeline that holds every engine, and utilisations near the offered load", () => {
    const { timeline, utilisation } = figures;
    expect(Object.keys(timeline.utilisation)).toEqual(["east-1", "west-1", "west-2"]);
    expect(timeline.meanTtftMs).toHaveLength(timeline.atS.length);
    const [a, b, c] = ["east-1", "west-1", "west-2"].map((id) => utilisation[id]!);
    // Drawn token counts, and what is read of prompts again, move it off 0.5.
    expect((10 * a! + 10 * b! + 5 * c!) / 25).toBeGreaterThan(0.35);
    expect((10 * a! + 10 * b! + 5 * c!) / 25).toBeLessThan(0.65);
  });

  it("take percentiles by nearest rank", () => {
    expect([0, 50, 95, 100].map((percent) => percentile(Float64Array.of(1, 2, 3, 4), percent))).toEqual([1, 2, 4, 4]);
    expect(percentile(new Float64Array(0), 50)).toBe(0);
  });

  it("make one page that asks for nothing, with the library and the figures in it", () => {
    const facts = { command: "guidevane simulate", fleet: "<f>", seed: 3, slo, conditions: [], workload };
    const page = reportPage(reportOf(facts, [figures]));
    expect(page).not.toMatch(/<(?:script|link|img)[^>]+(?:src|href)=/);
    expect(page).toContain("uPlot");
    const json = /<script type="application\/json" id="report">([^<]*)<\/script>/.exec(page)![1]!;
    expect(JSON.parse(json)).toMatchObject({
      format: "guidevane-lab-report/1",
      fleet: "<f>",
      policies: [{ policy: "guidevane" }],
    });
    expect(() => new Function(REPORT_SCRIPT)).not.toThrow();
  });

  it("say who is best, by how much, and who lost requests", () => {
    const other = (policy: string, factor: number, lost = 0): PolicyFigures => ({
      ...figures,
      policy,
      unansweredPart: lost,
      e2e: { ...figures.e2e!, meanMs: figures.e2e!.meanMs * factor, p99Ms: figures.e2e!.p99Ms * factor },
    });
    const worse = verdictOf([figures, other("slow", 1.25), other("lossy", 0.5, 0.2)]);
    expect(worse).toContain("guidevane is best");
    expect(worse).toContain("20 % below slow");
    expect(worse).toContain("More than 1 % of the requests had no answer with lossy.");
    const better = verdictOf([figures, other("fast", 0.5)]);
    expect(better).toMatch(/Mean time to the last token: fast is best .* guidevane has .* 100 % more, behind fast\./);
    const alone = verdictOf([figures]);
    expect(alone).toContain("Mean time to the last token: guidevane has ");
    expect(alone).not.toContain("best");
  });
});

describe("tuning", () => {
  it("takes the best of the grid", () => {
    const costs = policyOf("waterfall").grid.threshold!.map((threshold) => {
      const { tally } = runLab({ ...optionsOf("waterfall"), values: { threshold } });
      const rows = [...tally.arrivedMs.keys()].filter((row) => tally.arrivedMs[row]! >= workload.settleMs);
      return { threshold, ms: rows.reduce((sum, row) => sum + tally.e2eMs[row]!, 0) };
    });
    const best = costs.reduce((a, b) => (b.ms < a.ms ? b : a));
    expect(tune(optionsOf("waterfall"))).toEqual({ threshold: best.threshold });
  });
});
