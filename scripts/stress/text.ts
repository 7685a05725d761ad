import type { KilledEngine } from "../../test/src/stress/killed-engine.ts";
import type { MemoryTrend } from "../../test/src/stress/memory.ts";
import type { ScenarioRow } from "../../test/src/stress/scenarios.ts";
import type { Soak } from "../../test/src/stress/soak.ts";

/** A report, and whether all that must be so was so. */
export interface Report {
  readonly text: string;
  readonly good: boolean;
}

export function showKilledEngine(seen: KilledEngine, rateRps: number): Report {
  const moved = seen.movedKeys - seen.movedByBound - seen.movedByPlan;
  const rows: Row[] = [
    [`errors of answers not yet begun, of ${seen.sent} requests at ${rateRps}/s`, counts(seen.errorsBeforeAnswer), "0"],
    ["streams cut in the middle; counted as running there at the kill", `${seen.cut}; ${seen.running}`, ""],
    ["last failed attempt at the dead engine", `${seen.quietMs.toFixed(0)} ms (${seen.attemptsFailed} failed)`, "1 s"],
    ["slowest answer after the kill", `${seen.worstMs.toFixed(0)} ms`, ""],
    [
      `keys of living engines elsewhere, of ${seen.livingKeys}`,
      `${moved}, and ${seen.movedByBound} by the bound, ${seen.movedByPlan} by the next plan`,
      "0",
    ],
    ["first answer from it after its port was back", ms(seen.backMs), "5 s"],
    [
      "its share, second by second",
      seen.shares
        .map((share) => `${(100 * share).toFixed(0)}`)
        .join(" ")
        .concat(" %"),
      "ramped",
    ],
    [
      "keys where they were before all this; elsewhere by the bound",
      `${seen.homeAgain} of ${seen.livingKeys + seen.victimKeys}; ${seen.keptByBound}`,
      "",
    ],
    ["the load was at most late by", `${seen.lateMs.toFixed(0)} ms`, ""],
  ];
  const errors = Object.keys(seen.errorsBeforeAnswer).length;
  const good = errors === 0 && seen.quietMs < 1000 && moved === 0 && seen.backMs !== null && seen.backMs < 5000;
  return { text: table(["what", "seen", "must"], rows), good };
}

export function showSoak(seen: Soak, rateRps: number, minutes: number): Report {
  const rows: Row[] = [
    [`requests in ${minutes} minutes at ${rateRps}/s`, String(seen.sent)],
    ["answered whole", String(seen.whole)],
    ["clients that left", String(seen.left)],
    [`cut by the death of their engine, in ${seen.engineDeaths} deaths`, String(seen.cut)],
    [
      "lost with their engine before an answer; retries that the budget refused",
      `${seen.lost}; ${seen.retriesRefused}`,
    ],
    ["refused as too much", counts(seen.refused)],
    ["errors that nothing of this explains", String(seen.unexplained.length)],
    ["versions published, seen each second", String(seen.versions)],
    [
      "of these, plans that shed; the most demand ÷ capacity that one went by",
      `${seen.sheddingPlans}; ${(100 * seen.plannedLoad).toFixed(0)} %`,
    ],
    ["control planes killed", String(seen.controlDeaths)],
    ["slots left when all clients were gone", String(seen.slotsLeft)],
    ["the load was at most late by", `${seen.lateMs.toFixed(0)} ms`],
  ];
  const memory = seen.memory.map(({ name, lives, threads, rss, held }) => [
    ...[name, String(lives), String(threads), spread(rss), slope(rss), spread(held), slope(held)],
  ]);
  const memoryHead = ["process", "lives", "threads", "RSS, MB", "MB/h", "held after a full collection, MB", "MB/h"];
  const unexplained = seen.unexplained.slice(0, SHOWN).map((line) => `- ${line}\n`);
  return {
    text: `${table(["what", "seen"], rows)}\n${table(memoryHead, memory)}${unexplained.length > 0 ? "\n" : ""}${unexplained.join("")}`,
    good: seen.unexplained.length === 0 && seen.slotsLeft === 0,
  };
}

export function showScenarios(rows: readonly ScenarioRow[], rateRps: number): Report {
  const head = [
    ...[
      "what",
      "requests",
      "errors before an answer",
      "cut; requests at what died",
      "of all these, not at what died",
      "p99 TTFT before; from then on",
    ],
    ...["to the new optimum; and back", "gap at the end"],
  ];
  const text = table(
    head,
    rows.map((row) => [
      ...[row.name, String(row.sent), counts(row.errorsBeforeAnswer), `${row.cut}; ${row.running ?? "–"}`],
      String(row.beyond),
      `${ms(row.p99TtftBeforeMs)}; ${ms(row.p99TtftMs)}`,
      `${settled(row.optimumMs)}; ${settled(row.optimumAfterMs)}`,
      row.gap === null ? "–" : `${(100 * row.gap).toFixed(2)} %`,
    ]),
  );
  return {
    text: `${rateRps} requests/s in each of two clusters.\n\n${text}`,
    good: rows.every(({ beyond }) => beyond === 0),
  };
}

/** Median of the second quarter, of the last one, and the most. */
function spread({ beforeMb, afterMb, mostMb }: MemoryTrend): string {
  return [beforeMb, afterMb, mostMb].map((mb) => (mb === null ? "–" : mb.toFixed(1))).join("; ");
}

function slope({ slopeMbPerHour }: MemoryTrend): string {
  return slopeMbPerHour === null ? "–" : slopeMbPerHour.toFixed(1);
}

function settled(value: number | null): string {
  return value === null ? "no move" : `${(value / 1000).toFixed(1)} s`;
}

const SHOWN = 20;

type Row = readonly string[];

export function table(head: Row, rows: readonly Row[]): string {
  const line = (cells: Row): string => `| ${cells.join(" | ")} |\n`;
  return line(head) + line(head.map(() => "---")) + rows.map(line).join("");
}

export function counts(byName: Readonly<Record<string, number>>): string {
  const all = Object.entries(byName).map(([name, count]) => `${count} × ${name}`);
  return all.length === 0 ? "0" : all.join(", ");
}

export function ms(value: number | null): string {
  return value === null ? "never" : `${value.toFixed(0)} ms`;
}
