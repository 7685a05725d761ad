import type { Diff, ExplainedMove, InputKind } from "@guidevane/optimizer";
import { because } from "./fleet-explanation.ts";
import { showTable } from "./table.ts";

/** In the order in which inputs are changed. */
const KINDS: readonly InputKind[] = ["eligibility", "capacity", "network", "work", "demand"];
/** A person reads this many; programs take --json. */
const MOST_CHANGES = 20;
const MOST_MOVES = 40;

/** What changed between two versions, and a table of moves whose parts sum to the whole as printed. */
export function showDiff({ from, to, why, changed, weights }: Diff): string {
  const lines = KINDS.flatMap((kind) => changed[kind].map((what) => `${kind}: ${what}\n`));
  const parts = [
    `version ${from} to ${to}${because(why)}\n`,
    lines.length === 0 ? "no input changed\n" : capped(lines, MOST_CHANGES),
    weights.length === 0 ? "no weight moved\n" : showMoves(weights),
  ];
  return parts.join("\n");
}

function showMoves(weights: readonly ExplainedMove[]): string {
  const rows = weights.slice(0, MOST_MOVES).map((move) => {
    const before = hundredths(move.before);
    const whole = hundredths(move.after) - before;
    const own = [...KINDS, "rest" as const].map((kind) => hundredths(move.parts[kind]));
    // What rounding leaves goes to the largest part, so that the row adds up.
    const left = whole - own.reduce((sum, each) => sum + each, 0);
    const largest = own.map(Math.abs).indexOf(Math.max(...own.map(Math.abs)));
    own[largest]! += left;
    return [move.cluster, move.class, move.engine, show(before), show(before + whole), ...[whole, ...own].map(signed)];
  });
  const table = showTable(["cluster", "class", "engine", "before", "after", "move", ...KINDS, "rest"], rows);
  const more = weights.length - rows.length;
  return `weights in %, moves in points\n${table}${more > 0 ? `… ${more} more; --json has all\n` : ""}`;
}

function capped(lines: readonly string[], most: number): string {
  const more = lines.length - most;
  return lines.slice(0, most).join("") + (more > 0 ? `… ${more} more; --json has all\n` : "");
}

/** A weight in hundredths of a percent. */
function hundredths(part: number): number {
  return Math.round(part * 10_000);
}

function show(value: number): string {
  return (value / 100).toFixed(2);
}

function signed(value: number): string {
  return value === 0 ? "" : `${value > 0 ? "+" : ""}${show(value)}`;
}
