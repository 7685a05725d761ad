import { cycleFinding } from "./cycle.ts";
import { ageFinding, churnFinding, errorFinding, outageFinding } from "./disturbances.ts";
import { loadsFinding } from "./loads.ts";
import { objectiveFinding } from "./objective.ts";

/** The tables of docs/findings.md, one by its name or all. */
const FINDINGS: Readonly<Record<string, () => Promise<void>>> = {
  objective: objectiveFinding,
  loads: loadsFinding,
  cycle: cycleFinding,
  churn: churnFinding,
  age: ageFinding,
  outage: outageFinding,
  error: errorFinding,
};

const names = process.argv.slice(2);
for (const name of names.length > 0 ? names : Object.keys(FINDINGS)) {
  const finding = FINDINGS[name];
  if (finding === undefined) {
    process.stderr.write(`no finding ${name}; there are ${Object.keys(FINDINGS).join(", ")}\n`);
    process.exitCode = 2;
    break;
  }
  await finding();
}
