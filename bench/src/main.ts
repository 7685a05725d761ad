import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { BenchGroup, Goal } from "./case.ts";
import { groups, loadGroups } from "./groups.ts";
import type { LoadGroup } from "./load/group.ts";
import { table } from "./load/table.ts";
import { measure } from "./measure.ts";
import { type CaseResult, type Results, showNs, thisCommit, thisMachine } from "./results.ts";

/**
 * `node src/main.ts [--short] [GROUP…]` times the groups named, or all, prints a line for each case and writes the results
 * to `results/local/`. `--short` leaves out what takes minutes. Exit 2 for a group that does not exist.
 */
const isShort = process.argv.includes("--short");
const wanted = process.argv.slice(2).filter((each) => each !== "--short");
const names = [...groups, ...loadGroups].map(({ name }) => name);
const unknown = wanted.filter((name) => !names.includes(name));
const isWanted = ({ name }: { name: string }) => wanted.length === 0 || wanted.includes(name);
if (unknown.length > 0) {
  console.error(`no group ${unknown.join(", ")}; there are ${names.join(", ")}`);
  process.exitCode = 2;
} else {
  await benchAll(groups.filter(isWanted), loadGroups.filter(isWanted));
}

async function benchAll(chosen: readonly BenchGroup[], loads: readonly LoadGroup[]): Promise<void> {
  const at = new Date().toISOString();
  const cases: Record<string, CaseResult> = {};
  const missing: string[] = [];
  const ratios: Record<string, number> = {};
  const figures: Record<string, number> = {};
  for (const group of chosen) {
    const open = await group.open(isShort ? "short" : "full");
    try {
      for (const line of open.missing) console.log(`not timed: ${line}`);
      missing.push(...open.missing);
      for (const [name, result] of await measure(open.cases, open.effort)) {
        cases[name] = result;
        const goal = open.goals?.get(name);
        const held = goal === undefined ? "" : ` (${judge(result.medianNs / 1e6, goal)})`;
        console.log(`${name}: ${showNs(result.medianNs)} ± ${showNs(result.spreadNs)}${held}`);
      }
      for (const { name, over, under } of open.ratios ?? []) {
        ratios[name] = cases[over]!.medianNs / cases[under]!.medianNs;
        console.log(`${name}: ${ratios[name].toPrecision(3)}`);
      }
      for (const [name, value] of Object.entries((await open.figures?.()) ?? {})) {
        figures[name] = value;
        console.log(`${name}: ${value.toPrecision(4)}`);
      }
    } finally {
      await open.close();
    }
  }
  for (const load of loads) {
    const found = await load.run(isShort ? "short" : "full", (line) => console.log(line));
    for (const line of table(found)) console.log(line);
    Object.assign(cases, found.cases);
    Object.assign(ratios, found.ratios);
    Object.assign(figures, found.figures);
    missing.push(...found.missing);
  }
  const results: Results = { at, commit: thisCommit(), machine: thisMachine(), cases, ratios, figures, missing };
  const folder = fileURLToPath(new URL("../results/local/", import.meta.url));
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `${at.replaceAll(":", "-")}.json`);
  writeFileSync(path, `${JSON.stringify(results, null, 2)}\n`);
  console.log(`written to ${path}`);
}

function judge(ms: number, { mustMs, aimMs }: Goal): string {
  if (ms > mustMs) return `OVER ${mustMs} ms`;
  return ms > aimMs ? `within ${mustMs} ms, aim ${aimMs} ms` : `within its aim of ${aimMs} ms`;
}
