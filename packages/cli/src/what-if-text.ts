import type { EngineMove, Move, WeightMove, WhatIf } from "@guidevane/optimizer";
import { showTable } from "./table.ts";

/** A person reads this many; programs take --json. */
const MOST_ROWS = 40;

/** What would be, for a person: the figures of the fleet, engines, the weights that move, and how many keys. */
export function showWhatIf({ status, message, before, after, engines, weights, keysMoved }: WhatIf): string {
  if (before === null || after === null) return `no such plan: ${status}${message === "" ? "" : `: ${message}`}\n`;
  const figures = showTable(
    ["", "now", "then", "change"],
    [
      moveRow("requests/s", { before: before.demandRps, after: after.demandRps }),
      moveRow("shed/s", { before: before.shedRps, after: after.shedRps }),
      moveRow("mean latency ms", { before: before.expectedLatencyMs, after: after.expectedLatencyMs }),
      moveRow("cost ms a request", { before: before.objectiveMs, after: after.objectiveMs }),
      moveRow("proven least", { before: before.lowerBoundMs, after: after.lowerBoundMs }),
    ],
  );
  const parts = [
    ...(message === "" ? [] : [`${message}\n`]),
    figures,
    engineTable(engines),
    weights.length === 0 ? "no weight moves\n" : weightTable(weights),
    `${percent(keysMoved)} of the requests have keys that move; nothing was published\n`,
  ];
  return parts.join("\n");
}

function engineTable(engines: readonly EngineMove[]): string {
  const rows = engines.map(({ engine, loadWps, capacityWps, worthMs }) => [
    engine,
    show(loadWps.before),
    show(loadWps.after),
    show(capacityWps.before),
    show(capacityWps.after),
    used(loadWps.before, capacityWps.before),
    used(loadWps.after, capacityWps.after),
    show(worthMs.after),
  ]);
  return capped(["engine", "work/s now", "then", "capacity now", "then", "used now", "then", "worth then"], rows);
}

function weightTable(weights: readonly WeightMove[]): string {
  const rows = weights.map(({ cluster, class: requestClass, engine, weight, rps }) => [
    cluster,
    requestClass,
    engine,
    percent(weight.before),
    percent(weight.after),
    signed(rps.after - rps.before),
  ]);
  return capped(["cluster", "class", "engine", "weight now", "then", "requests/s moved"], rows);
}

function capped(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const more = rows.length - MOST_ROWS;
  return showTable(head, rows.slice(0, MOST_ROWS)) + (more > 0 ? `… ${more} more; --json has all\n` : "");
}

function moveRow(name: string, { before, after }: Move): string[] {
  return [name, show(before), show(after), signed(after - before)];
}

function used(loadWps: number, capacityWps: number): string {
  return capacityWps > 0 ? percent(loadWps / capacityWps) : "–";
}

function show(value: number): string {
  return String(Number(value.toPrecision(5)));
}

function signed(value: number): string {
  return `${value > 0 ? "+" : ""}${show(value)}`;
}

function percent(part: number): string {
  return `${(100 * part).toFixed(1)} %`;
}
