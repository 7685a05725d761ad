import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import type { BenchCase } from "./case.ts";
import { compare } from "./compare.ts";
import { measure } from "./measure.ts";
import { type CaseResult, median, type Results, readResults, regressions } from "./results.ts";

const machine = { cpu: "x", cores: 2, memoryGiB: 8, platform: "linux-x64", node: "v24.0.0" };

function results(cases: Record<string, Partial<CaseResult>>): Results {
  const whole = Object.entries(cases).map(([name, each]) => [name, { medianNs: 100, spreadNs: 1, rounds: 5, ...each }]);
  return { at: "2026-01-01T00:00:00.000Z", commit: "c", machine, cases: Object.fromEntries(whole), missing: [] };
}

const before = results({ pick: { medianNs: 100, spreadNs: 3 } });

describe("a comparison of two runs", () => {
  it.each([
    ["a case that is slower past budget and noise", { pick: { medianNs: 130, spreadNs: 3 } }, 1],
    ["not one that is slower within the budget", { pick: { medianNs: 109, spreadNs: 0 } }, 0],
    ["not one past the budget but within the noise of both", { pick: { medianNs: 130, spreadNs: 28 } }, 0],
    ["one just outside the noise of both", { pick: { medianNs: 131, spreadNs: 27 } }, 1],
    ["not one that is faster", { pick: { medianNs: 50 } }, 0],
    ["a case that vanished", {}, 1],
    ["not a new case", { pick: { medianNs: 100 }, solve: { medianNs: 1e9 } }, 0],
  ])("reports %s", (_what, cases, count) => {
    expect(regressions(before, results(cases), 0.1)).toHaveLength(count);
  });

  it("says which case, before and after", () => {
    const [line] = regressions(before, results({ pick: { medianNs: 2500 } }), 0.1);
    expect(line).toBe("pick: 100.0 ns before, 2.50 µs after (+2400.0 %)");
  });
});

describe("the compare program", () => {
  const folder = mkdtempSync(join(tmpdir(), "guidevane-bench-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  const file = (name: string, data: unknown) => {
    const path = join(folder, name);
    writeFileSync(path, JSON.stringify(data));
    return path;
  };
  const old = file("before.json", before);
  const run = (...args: string[]) => {
    const lines: string[] = [];
    return { code: compare(args, (line) => lines.push(line)), lines };
  };

  it("ends with 0 when nothing is slower, and shows each change", () => {
    const { code, lines } = run(old, file("same.json", results({ pick: { medianNs: 101 } })));
    expect([code, ...lines]).toEqual([0, "pick: 101.0 ns (+1.0 %)"]);
  });

  it("ends with 1 when a case is slower, or gone", () => {
    expect(run(old, file("slow.json", results({ pick: { medianNs: 200 } }))).code).toBe(1);
    const gone = run(old, file("gone.json", results({})));
    expect([gone.code, ...gone.lines]).toEqual([1, "SLOWER pick: no result any more"]);
  });

  it("takes the budget it is given", () => {
    const slow = file("slow.json", results({ pick: { medianNs: 150 } }));
    expect(run(old, slow, "--budget", "0.6").code).toBe(0);
  });

  it("warns when the machines differ", () => {
    const other = { ...results({ pick: {} }), machine: { ...machine, cores: 64 } };
    expect(run(old, file("other.json", other)).lines[0]).toMatch(/^the machines differ/);
  });

  it("ends with 2 on bad usage", () => {
    expect(run(old).code).toBe(2);
    expect(run(old, old, "--budget", "much").code).toBe(2);
    expect(run(old, old, "--bugdet", "0.1").code).toBe(2);
    expect(run(old, join(folder, "none-here.json")).code).toBe(2);
  });

  it("refuses a file whose cases have no figures", () => {
    expect(() => readResults(file("bad.json", { cases: { pick: { medianNs: null } } }))).toThrow(/pick has no median/);
    expect(() => readResults(file("none.json", {}))).toThrow(/has no cases/);
  });
});

describe("a measurement", () => {
  it("is per operation: a batch of ten takes a tenth of its time for each", async () => {
    let calls = 0;
    const each: BenchCase = {
      name: "spin",
      batch: 10,
      question: "",
      run() {
        calls++;
        const end = performance.now() + 1;
        while (performance.now() < end);
      },
      answer: () => 0,
    };
    const found = await measure([each], { rounds: 3, caseMs: 5, warmupMs: 1, leastRuns: 8 });
    const { medianNs, rounds } = found.get("spin")!;
    expect(rounds).toBe(3);
    expect(calls).toBeGreaterThanOrEqual(3 * 10);
    // A millisecond of spinning for ten operations; a busy machine makes it longer, nothing makes it shorter.
    expect(medianNs).toBeGreaterThanOrEqual(99_000);
  });

  it("fails when a case fails", async () => {
    const failing: BenchCase = {
      name: "bad",
      batch: 1,
      question: "",
      run() {
        throw new Error("wrong");
      },
      answer: () => 0,
    };
    await expect(measure([failing], { rounds: 1, caseMs: 1, warmupMs: 1, leastRuns: 8 })).rejects.toThrow(/bad: /);
  });

  it("takes the middle, or the mean of the two middles", () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 2, 3])).toBe(2.5);
  });
});
