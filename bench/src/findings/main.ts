import { cycleFinding } from "./cycle.ts";
import { ageFinding, churnFinding, errorFinding, outageFinding } from "./disturbances.ts";
import { loadsFinding } from "./loads.ts";
import { objectiveFinding } from "./objective.ts";
import { penaltiesFinding } from "./penalties.ts";
import { placementFinding } from "./placement.ts";
import { prefixesFinding } from "./prefixes.ts";
import { speedFinding } from "./speed.ts";
import { stormFinding } from "./storm.ts";

/** The tables of docs/findings.md, one by its name or all; `loads` and `cycle` take loads after it, as in `loads 0.8`. */
const FINDINGS: Readonly<Record<string, (loads: readonly number[]) => Promise<void>>> = {
  objective: objectiveFinding,
  loads: loadsFinding,
  cycle: cycleFinding,
  churn: churnFinding,
  age: ageFinding,
  outage: outageFinding,
  error: errorFinding,
  placement: placementFinding,
  prefixes: prefixesFinding,
  penalties: penaltiesFinding,
  storm: stormFinding,
  speed: speedFinding,
};

const words = process.argv.slice(2);
const loads = words.map(Number).filter((load) => !Number.isNaN(load));
const names = words.filter((word) => Number.isNaN(Number(word)));
for (const name of names.length > 0 ? names : Object.keys(FINDINGS)) {
  const finding = FINDINGS[name];
  if (finding === undefined) {
    process.stderr.write(`no finding ${name}; there are ${Object.keys(FINDINGS).join(", ")}\n`);
    process.exitCode = 2;
    break;
  }
  await finding(loads);
}
