import { runStorm, STORM_RULES, type StormRule, TRIGGERS } from "@guidevane/simulator";
import { printTable } from "./show.ts";

const UTILISATIONS = [0.7, 0.8, 0.85, 0.9];
const SEEDS = [1, 2, 3];

/** Seconds until a fleet is back after each trigger, by who tries again: the longest of three seeds. */
export async function stormFinding(): Promise<void> {
  for (const cancels of [false, true]) {
    const rows: string[][] = [];
    for (const trigger of TRIGGERS) {
      const cells: string[] = [];
      for (const rule of Object.keys(STORM_RULES) as StormRule[]) {
        const [recoveries, amplifications]: [string[], number[]] = [[], []];
        for (const utilisation of UTILISATIONS) {
          let longestS = 0;
          for (const seed of SEEDS) {
            const { recoveryS, amplification } = await runStorm({ rule, trigger, utilisation, cancels, seed });
            longestS = Math.max(longestS, recoveryS);
            amplifications.push(amplification);
          }
          recoveries.push(Number.isFinite(longestS) ? String(longestS) : "–");
        }
        cells.push(`${recoveries.join(" / ")} (${Math.max(...amplifications).toFixed(2)})`);
      }
      rows.push([trigger, ...cells]);
    }
    const work = cancels ? "dropped when the client leaves" : "done though the client has left";
    printTable(
      `work ${work}: seconds until back at ${UTILISATIONS.join(" / ")} (most attempts ÷ first attempts in 10 s), worst of ${SEEDS.length} seeds`,
      ["trigger", ...Object.keys(STORM_RULES)],
      rows,
    );
  }
}
