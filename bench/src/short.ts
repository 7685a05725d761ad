import { fileURLToPath } from "node:url";
import { bodies } from "./bodies.ts";
import { type Budgets, readBudgets } from "./budget.ts";
import type { BenchCase, BenchGroup, OpenGroup } from "./case.ts";
import { crossing } from "./crossing.ts";
import { fastestNs } from "./fastest.ts";
import { HELD_HEAD, holdToBudgets, showHeld, showVerdict } from "./hold-to-budgets.ts";
import { observe } from "./observe.ts";
import { pick } from "./pick.ts";
import { solver } from "./solver.ts";
import { yardstick } from "./yardstick.ts";

/**
 * `node src/short.ts`: holds the hot paths to `budgets.json` in some seconds. Exit 1 when a case is past its budget beyond
 * the noise of repeated rounds, or there is no such case any more. Without the addon its cases are left out, and said so.
 */
const GROUPS: readonly BenchGroup[] = [bodies, crossing, pick, observe, solver];
/** Of a case in a round. */
const CASE_MS = 100;

const budgets = readBudgets(fileURLToPath(new URL("../budgets.json", import.meta.url)));
const open: OpenGroup[] = [];
try {
  for (const group of GROUPS) open.push(await group.open("short"));
  process.exitCode = await shortBench(open, budgets);
} finally {
  for (const group of open) await group.close();
}

async function shortBench(groups: readonly OpenGroup[], budgets: Budgets): Promise<number> {
  const all = new Map(groups.flatMap(({ cases }) => cases.map((each): [string, BenchCase] => [each.name, each])));
  const missing = groups.flatMap((group) => group.missing);
  for (const line of missing) console.log(`not timed: ${line}`);
  const gone = Object.keys(budgets).filter((name) => !all.has(name) && !(missing.length > 0 && isNative(name)));
  for (const name of gone) console.log(`GONE   ${name}: has a budget and is no case any more`);
  const cases = Object.keys(budgets).flatMap((name) => all.get(name) ?? []);
  const { cases: held, shift } = await holdToBudgets(cases, budgets, yardstick(), (each) => fastestNs(each, CASE_MS));
  console.log(HELD_HEAD);
  for (const each of held) console.log(showHeld(each, budgets[each.name]!));
  if (shift > 1)
    console.log(`the middle case takes ${shift.toFixed(2)} times as long as it did; so much is the machine's`);
  console.log(showVerdict(held, gone.length));
  return gone.length > 0 || held.some(({ verdict }) => verdict === "over") ? 1 : 0;
}

function isNative(name: string): boolean {
  return name.split("/").includes("native");
}
