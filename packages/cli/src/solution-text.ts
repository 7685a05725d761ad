import type { SolutionCheck, SolutionFile } from "@guidevane/optimizer";
import { showTable } from "./table.ts";

/** A person reads this many rows of a table; programs take --json. */
const MOST_ROWS = 40;

/** A solution for a person: how good it is, what cells and engines pay, and the weights. */
export function showSolution(answer: SolutionFile, readMs: number, check: SolutionCheck | null): string {
  const { cells, engines, arcs } = answer;
  const demand = sum(cells.demandWps);
  const shed = sum(cells.shedWps);
  const parts = [
    summary(answer, readMs, demand, shed),
    table(
      ["cell", "demand/s", "shed", "price ms"],
      cells.id.map((id, at) => [
        id,
        show(cells.demandWps[at]!),
        percent(cells.shedWps[at]!, cells.demandWps[at]!),
        show(cells.priceMs[at]!),
      ]),
    ),
    table(
      ["engine", "load/s", "of capacity", "price ms"],
      engines.id.map((id, at) => [
        id,
        show(engines.loadWps[at]!),
        percent(engines.loadWps[at]!, engines.capacityWps[at]!),
        show(engines.priceMs[at]!),
      ]),
    ),
    table(
      ["cell", "engine", "weight", "work/s"],
      arcs.arc.map((_, at) => [
        cells.id[arcs.cell[at]!]!,
        engines.id[arcs.engine[at]!]!,
        arcs.weight[at]!.toFixed(4),
        show(arcs.flowWps[at]!),
      ]),
    ),
  ];
  if (check !== null) parts.push(showCheck(check, demand));
  return parts.filter((part) => part !== "").join("\n");
}

function summary(answer: SolutionFile, readMs: number, demand: number, shed: number): string {
  const per = demand > 0 ? 1 / demand : 0;
  const lines = [
    `${answer.status}${answer.message === "" ? "" : `: ${answer.message}`}`,
    `solver   ${answer.solver}, ${show(answer.solveMs)} ms to solve, ${show(readMs)} ms to read`,
    `cost     ${show(answer.objectiveMs * per)} ms a unit of work`,
    `bound    ${show(answer.lowerBoundMs * per)} ms: no weights can cost less`,
    `gap      ${(answer.gapMs * per).toExponential(2)} ms, ${answer.gap.toExponential(2)} of the bound`,
    `shed     ${show(shed)} of ${show(demand)} units of work a second`,
  ];
  return lines.map((line) => `${line}\n`).join("");
}

function showCheck({ faults, objectiveMs, lowerBoundMs, split }: SolutionCheck, demand: number): string {
  if (faults.length > 0) return faults.map((fault) => `not verified: ${fault}\n`).join("");
  const per = demand > 0 ? 1 / demand : 0;
  const whole = `verified: feasible; cost and bound recomputed, ${((objectiveMs - lowerBoundMs) * per).toExponential(2)} ms apart`;
  if (split === null) return `${whole}\n`;
  const { arcsMs, shedMs, enginesMs } = split;
  const part = (ms: number) => (ms * per).toExponential(2);
  return `${whole} (arcs ${part(arcsMs)}, sheds ${part(shedMs)}, engines ${part(enginesMs)})\n`;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const more = rows.length - MOST_ROWS;
  return showTable(head, rows.slice(0, MOST_ROWS)) + (more > 0 ? `… ${more} more; --json has all\n` : "");
}

function percent(part: number, whole: number): string {
  return whole > 0 ? `${((100 * part) / whole).toFixed(1)} %` : "–";
}

function show(value: number): string {
  return String(Number(value.toPrecision(6)));
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
