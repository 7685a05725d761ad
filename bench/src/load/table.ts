import { showNs } from "../results.ts";
import type { LoadFindings } from "./group.ts";
import { YARDSTICK } from "./group.ts";

/** Findings as lines: a row a front, a block a reading, each beside its ratio to the yardstick and its spread. */
export function table({ cases, ratios, figures, missing }: LoadFindings): string[] {
  const lines = missing.map((line) => `not measured: ${line}`);
  let block = "";
  // Two readings of one load come in turn; each gets a block of its own.
  for (const name of Object.keys(cases).sort((a, b) => blockOf(a).localeCompare(blockOf(b)))) {
    const { medianNs, spreadNs, rounds, disturbed } = cases[name]!;
    if (blockOf(name) !== block) {
      block = blockOf(name);
      lines.push("", block);
    }
    const ratio = ratios[`${name}-over-${YARDSTICK}`];
    const cells = [
      name.slice(block.length + 1).padEnd(14),
      showNs(medianNs).padStart(10),
      `± ${showNs(spreadNs)}`.padEnd(12),
      (ratio === undefined ? "" : `${ratio.toFixed(2)} × ${YARDSTICK}`).padEnd(14),
      disturbed === 0 ? "" : `${disturbed} of ${rounds} rounds disturbed by others`,
    ];
    lines.push(`  ${cells.join("  ")}`.trimEnd());
  }
  if (Object.keys(figures).length > 0) lines.push("");
  for (const [name, value] of Object.entries(figures)) lines.push(`${name}: ${value.toPrecision(3)}`);
  return lines;
}

function blockOf(name: string): string {
  return name.slice(0, name.lastIndexOf("/"));
}
