import type { Explanation } from "./explain.ts";
import type { Addends, EngineExplanation, Range } from "./explain-engine.ts";

const COLUMNS: readonly (readonly [keyof Addends, string])[] = [
  ["networkMs", "network"],
  ["serviceMs", "service"],
  ["ownWaitMs", "own wait"],
  ["inflictedMs", "inflicted"],
  ["capacityPriceMs", "capacity"],
  ["stabilityMs", "stability"],
];

/** An explanation for a person: a table whose rows add up as printed, and a sentence. Ends with a line break. */
export function showExplanation(explanation: Explanation): string {
  const {
    cluster,
    class: name,
    version,
    demandRps,
    shed,
    demandPriceMs,
    demandPriceRangeMs,
    engines,
    whyShed,
    sentence,
  } = explanation;
  const head = ["engine", "weight", ...COLUMNS.map(([, title]) => title), "sum", "too dear by", "used", "binds"];
  const rows = engines.map((each) => [
    each.engine,
    `${(100 * each.weight).toFixed(2)} %`,
    ...shownAddends(each),
    each.sumMs.toFixed(2),
    each.isUsed && each.binds !== "pin" ? "" : each.reducedCostMs.toFixed(2),
    each.capacityWps > 0 ? `${((100 * each.loadWps) / each.capacityWps).toFixed(1)} %` : "",
    each.binds,
  ]);
  return [
    `${cluster} ${name}, version ${version}: ${demandRps.toFixed(3)} requests/s, ${(100 * shed).toFixed(2)} % shed; ms a request`,
    `demand price ${demandPriceMs.toFixed(2)}${showRange(demandPriceRangeMs)}`,
    "",
    ...table([head, ...rows]),
    "",
    sentence,
    ...(whyShed === null || sentence.includes(whyShed) ? [] : [`${whyShed}.`]),
    "",
  ].join("\n");
}

function showRange(range: Range | null): string {
  if (range === null) return "";
  const more = range.oneMore === null ? "none to be had" : range.oneMore.toFixed(2);
  return `, the lowest of a range: one fewer ${range.oneFewer.toFixed(2)}, one more ${more}`;
}

/** Hundredths that add up to the sum as printed: what rounding leaves goes to the largest. */
function shownAddends({ addends, sumMs }: EngineExplanation): string[] {
  const hundredths = COLUMNS.map(([key]) => Math.round(addends[key] * 100));
  const rest = Math.round(sumMs * 100) - hundredths.reduce((sum, each) => sum + each, 0);
  const largest = hundredths.indexOf(Math.max(...hundredths));
  return hundredths.map((each, at) => ((each + (at === largest ? rest : 0)) / 100).toFixed(2));
}

/** Columns to one width; the first and the last to the left, figures to the right. */
function table(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) =>
    row
      .map((text, column) =>
        column === 0 || column === row.length - 1 ? text.padEnd(widths[column]!) : text.padStart(widths[column]!),
      )
      .join("  ")
      .trimEnd(),
  );
}
