import { describe, expect, it } from "vitest";
import { twoRegions } from "./lab.fixture.ts";
import { type LabRun, runLab } from "./lab.ts";
import type { Failure, LabOptions } from "./lab-options.ts";
import { POLICIES } from "./policies/index.ts";
import type { PolicyDefinition } from "./policy.ts";
import { syntheticWorkload } from "./synthetic.ts";
import { ENDED } from "./tally.ts";

const fleet = await twoRegions;
const policyOf = (name: string): PolicyDefinition => POLICIES.find((each) => each.name === name)!;
const quick = { thinkMs: 2000, turns: 3 };

function run(policy: string, more: Partial<LabOptions> & { load?: number; seconds?: number } = {}): LabRun {
  const { load = 0.6, seconds = 60, ...options } = more;
  const workload = syntheticWorkload({ fleet, seed: 7, seconds, load, ...quick });
  return runLab({ fleet, workload, policy: policyOf(policy), seed: 7, kvTokens: 500_000, ...options });
}

/** How many requests ended in each way. */
function ends({ tally }: LabRun): Record<keyof typeof ENDED, number> {
  const count = (code: number): number => tally.ended.reduce((sum, each) => sum + (each === code ? 1 : 0), 0);
  return {
    not: count(ENDED.not),
    answered: count(ENDED.answered),
    shed: count(ENDED.shed),
    failed: count(ENDED.failed),
    gaveUp: count(ENDED.gaveUp),
  };
}

function mean(run: LabRun, of: Float32Array): number {
  const counted = [...of.keys()].filter((row) => run.tally.arrivedMs[row]! >= run.tally.workload.settleMs);
  const values = counted.map((row) => of[row]!).filter((value) => !Number.isNaN(value));
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

const dead: Failure = { kind: "death", engine: "east-1", atMs: 40_000, forMs: 20_000 };

describe.each(POLICIES)("$name", (policy) => {
  it("answers every request of a fleet with room, with its own network time in it", () => {
    const result = run(policy.name, { load: 0.4, seconds: 30 });
    expect(ends(result)).toMatchObject({ answered: result.tally.workload.size, failed: 0, not: 0, shed: 0 });
    const { tally } = result;
    for (let row = 0; row < tally.workload.size; row++) {
      expect(tally.ttftMs[row]!).toBeGreaterThan(tally.networkMs[row]!);
      expect(tally.e2eMs[row]!).toBeGreaterThan(tally.ttftMs[row]!);
    }
  });

  it("goes on without an engine that died, and tries elsewhere what had not begun", () => {
    const { answered, failed, not } = ends(run(policy.name, { load: 0.3, failures: [dead] }));
    expect(not).toBe(0);
    expect(failed).toBeGreaterThan(0);
    expect(failed).toBeLessThan(0.03 * (answered + failed));
  });
});

describe("a run of the lab", () => {
  it("gives equal bytes for equal seeds, failures, time-outs and retries included", () => {
    const options: Partial<LabOptions> = {
      failures: [dead, { kind: "slowdown", engine: "west-1", factor: 3, atMs: 20_000, forMs: 30_000 }],
      client: { timeoutMs: 1500, cancels: true, attempts: 3, backoffMs: 500 },
    };
    const [one, two] = [run("guidevane", options), run("guidevane", options)];
    for (const column of ["e2eMs", "ttftMs", "engine", "ended", "cachedTokens", "attempts", "clientAttempts"] as const)
      expect(Buffer.from(one.tally[column].buffer).equals(Buffer.from(two.tally[column].buffer))).toBe(true);
    expect(one.events).toBe(two.events);
  });

  it("accounts for every request under overload, with impatient clients whose engines work on for nobody", () => {
    const client = { timeoutMs: 1000, cancels: false, attempts: 2, backoffMs: 200 };
    const result = run("random", { load: 1.4, client, maxWaiting: 20 });
    const { answered, shed, failed, gaveUp, not } = ends(result);
    expect(answered + shed + failed + gaveUp + not).toBe(result.tally.workload.size);
    expect(gaveUp).toBeGreaterThan(0);
    expect(failed).toBeGreaterThan(0);
    for (const attempts of result.tally.clientAttempts) expect(attempts).toBeLessThanOrEqual(2);
  });

  it("wins back its cache hits after all caches went cold", () => {
    const hits = (result: LabRun, fromMs: number, toMs: number): number => {
      const { cachedTokens, arrivedMs, workload } = result.tally;
      const rows = [...arrivedMs.keys()].filter((row) => arrivedMs[row]! >= fromMs && arrivedMs[row]! < toMs);
      const sum = (column: Uint32Array): number => rows.reduce((total, row) => total + column[row]!, 0);
      return sum(cachedTokens) / sum(workload.promptTokens);
    };
    const cold = run("guidevane", { failures: [{ kind: "cold-cache", atMs: 60_000 }], seconds: 80 });
    expect(hits(cold, 60_000, 63_000)).toBeLessThan(0.7 * hits(cold, 50_000, 60_000));
    expect(hits(cold, 80_000, 90_000)).toBeGreaterThan(0.9 * hits(cold, 50_000, 60_000));
  });

  it("sends nothing to a lost region and something to it again when it is back", () => {
    const failures: Failure[] = [{ kind: "region", region: "west", atMs: 30_000, forMs: 20_000 }];
    const { tally } = run("guidevane", { load: 0.3, failures });
    const west = (fromMs: number, toMs: number): number =>
      [...tally.arrivedMs.keys()].filter(
        (row) => tally.arrivedMs[row]! >= fromMs && tally.arrivedMs[row]! < toMs && tally.engine[row]! > 0,
      ).length;
    expect(west(25_000, 29_000)).toBeGreaterThan(0);
    expect(west(31_000, 48_000)).toBe(0);
    expect(west(60_000, 70_000)).toBeGreaterThan(0);
  });

  it("keeps routing by the last weights while the control plane is down", () => {
    const failures: Failure[] = [{ kind: "control-down", atMs: 10_000, forMs: 60_000 }];
    const [without, plain] = [run("guidevane", { failures }), run("guidevane")];
    expect(ends(without).answered).toBe(without.tally.workload.size);
    expect(
      without.tally.samples.filter(({ atMs }) => atMs > 12_000 && atMs < 69_000).every((each) => each.moved === 0),
    ).toBe(true);
    expect(mean(without, without.tally.e2eMs) / mean(plain, plain.tally.e2eMs)).toBeLessThan(1.05);
  });

  it("refuses failures of what the fleet does not have", () => {
    expect(() => run("random", { failures: [{ ...dead, engine: "nowhere" }] })).toThrow(/no engine nowhere/);
  });

  it("routes better by the plan than at random, which loses the caches and the way", () => {
    const [planned, drawn] = [run("guidevane"), run("random")];
    expect(mean(planned, planned.tally.e2eMs)).toBeLessThan(0.9 * mean(drawn, drawn.tally.e2eMs));
  });
});
