import type { OperatorAnswer, PlanFigures, TrafficFigures } from "@guidevane/control";
import type { Certificate } from "@guidevane/core";
import { showTable } from "./table.ts";

/** `GET /v1/explain` without a cell. */
export interface FleetExplanation extends PlanFigures {
  /** null: advice, which is not published. */
  readonly version: number | null;
  /** What it was published for; null = not known. */
  readonly why: string | null;
  readonly certificate?: Certificate;
  readonly operator: OperatorAnswer;
}

/** What a plan means for every cluster, for a person: latency, detour and shed share, how good it is, and who holds it. */
export function showFleetExplanation({
  version,
  why,
  certificate,
  fleet,
  clusters,
  operator,
}: FleetExplanation): string {
  const rows = clusters.flatMap((each) => {
    const ofClass = (cell: (typeof each.classes)[number], cluster: string) =>
      row(cluster, cell.class, cell, cell.priceMs.toFixed(1), cell.pinned);
    const [first, ...more] = each.classes;
    if (first !== undefined && more.length === 0) return [ofClass(first, each.cluster)];
    return [row(each.cluster, "", each, ""), ...each.classes.map((cell) => ofClass(cell, ""))];
  });
  const parts = [
    version === null ? "advice: not published\n" : `version ${version}${because(why)}\n`,
    showTable(HEAD, [...rows, row("(fleet)", "", fleet, "")]),
  ];
  if (certificate !== undefined) {
    const { objectiveMs, lowerBoundMs, gapMs } = certificate;
    parts.push(
      `cost ${objectiveMs.toFixed(3)} ms a request, and no weights can cost less than ${lowerBoundMs.toFixed(3)}: ${gapMs.toFixed(3)} ms at most to gain\n`,
    );
  }
  parts.push(showOperator(operator));
  return parts.filter((part) => part !== "").join("\n");
}

const HEAD = ["cluster", "class", "requests/s", "latency ms", "detour ms", "shed", "price ms"];

function row(cluster: string, name: string, figures: TrafficFigures, price: string, pinned = false): string[] {
  const ms = (value: number | null) => (value === null ? "–" : value.toFixed(1));
  return [
    cluster,
    pinned ? `${name} (pinned)` : name,
    String(Number(figures.demandRps.toPrecision(4))),
    ms(figures.meanLatencyMs),
    ms(figures.detourMs),
    `${(100 * figures.shed).toFixed(2)} %`,
    price,
  ];
}

/** What a version was published for, after its number. */
export function because(why: string | null): string {
  return why === null ? "" : `, published because ${why}`;
}

/** A line for each thing that an operator holds. */
export function showOperator({ frozen, rolledBackTo, pins, engines, advise }: OperatorAnswer): string {
  const lines: string[] = [];
  if (advise) lines.push("this control plane gives advice and publishes nothing");
  if (frozen) lines.push(rolledBackTo === null ? "frozen" : `frozen on the weights of version ${rolledBackTo}`);
  for (const { cluster, class: name, weights, until } of pins) {
    const parts = Object.entries(weights).map(([id, weight]) => `${id} ${weight}`);
    lines.push(`pinned until ${until}: ${cluster} ${name} to ${parts.join(", ")}`);
  }
  for (const [id, state] of Object.entries(engines)) lines.push(`${id} is ${state}`);
  return lines.map((line) => `operator: ${line}\n`).join("");
}
