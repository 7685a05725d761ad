import { parseArgs } from "node:util";
import { type Results, readResults, regressions, showChange, showNs } from "./results.ts";

/**
 * `node src/compare.ts BEFORE.json AFTER.json [--budget 0.1]`: prints each case's change, exit 1 when one is slower past
 * budget and noise, or gone; 2 on bad usage. Compare runs of one machine only.
 */
export function compare(args: readonly string[], print: (line: string) => void): number {
  let asked: Asked;
  try {
    asked = parseAsked(args);
  } catch (error) {
    print(`${error instanceof Error ? error.message : error}\nusage: compare.ts BEFORE.json AFTER.json [--budget 0.1]`);
    return 2;
  }
  const { before, after, budget } = asked;
  const machines = [before, after].map(({ machine }) => `${machine.cpu}, ${machine.cores} cores, ${machine.node}`);
  if (machines[0] !== machines[1]) print(`the machines differ, so do not trust this: ${machines.join(" / ")}`);
  for (const [name, now] of Object.entries(after.cases)) {
    const old = before.cases[name];
    print(`${name}: ${showNs(now.medianNs)} ${old === undefined ? "(new)" : `(${showChange(old, now)})`}`);
  }
  const slower = regressions(before, after, budget);
  for (const line of slower) print(`SLOWER ${line}`);
  return slower.length === 0 ? 0 : 1;
}

interface Asked {
  readonly before: Results;
  readonly after: Results;
  readonly budget: number;
}

/** @throws Error that says what is wrong with the arguments or the files that they name */
function parseAsked(args: readonly string[]): Asked {
  const { positionals, values } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { budget: { type: "string", default: "0.1" } },
  });
  const [before, after, ...more] = positionals;
  const budget = Number(values.budget);
  if (before === undefined || after === undefined || more.length > 0) throw new Error("two files are compared");
  if (!(budget >= 0)) throw new Error(`--budget must be 0 or more, got ${values.budget}`);
  return { before: readResults(before), after: readResults(after), budget };
}

if (import.meta.main) {
  process.exitCode = compare(process.argv.slice(2), (line) => console.log(line));
}
