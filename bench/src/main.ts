import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { BenchGroup } from "./case.ts";
import { groups } from "./groups.ts";
import { measure } from "./measure.ts";
import { type CaseResult, type Results, showNs, thisCommit, thisMachine } from "./results.ts";

/**
 * `node src/main.ts [GROUP…]` times the groups named, or all, prints a line for each case and writes the results to
 * `results/local/`. Exit 2 for a group that does not exist.
 */
const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !groups.some((group) => group.name === name));
if (unknown.length > 0) {
  console.error(`no group ${unknown.join(", ")}; there are ${groups.map(({ name }) => name).join(", ")}`);
  process.exitCode = 2;
} else {
  await benchAll(groups.filter(({ name }) => wanted.length === 0 || wanted.includes(name)));
}

async function benchAll(chosen: readonly BenchGroup[]): Promise<void> {
  const at = new Date().toISOString();
  const cases: Record<string, CaseResult> = {};
  const missing: string[] = [];
  for (const group of chosen) {
    const open = await group.open();
    try {
      for (const line of open.missing) console.log(`not timed: ${line}`);
      missing.push(...open.missing);
      for (const [name, result] of await measure(open.cases)) {
        cases[name] = result;
        console.log(`${name}: ${showNs(result.medianNs)} ± ${showNs(result.spreadNs)}`);
      }
    } finally {
      await open.close();
    }
  }
  const results: Results = { at, commit: thisCommit(), machine: thisMachine(), cases, missing };
  const folder = fileURLToPath(new URL("../results/local/", import.meta.url));
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `${at.replaceAll(":", "-")}.json`);
  writeFileSync(path, `${JSON.stringify(results, null, 2)}\n`);
  console.log(`written to ${path}`);
}
