import { partsInTurns } from "./loop-turns.ts";
import type { MetricFigures } from "./metrics.ts";

type Figure = MetricFigures[number];

/** Values that are added and written in one part: a fraction of a millisecond. */
const VALUES_A_PART = 512;

/**
 * Metrics of several threads, added up, as a scrape's text. Thousands of engines and classes make tens of thousands of lines,
 * which prom-client adds and writes in one turn: this thread may serve requests, so it is done a part in each.
 */
export function sumMetrics(figures: readonly MetricFigures[]): Promise<string> {
  return partsInTurns(writeMetrics(figures));
}

/** The same, for who has time in between. */
export function* writeMetrics(figures: readonly MetricFigures[]): Generator<void, string> {
  const byName = new Map<string, Figure[]>();
  for (const figure of figures.flat()) {
    const same = byName.get(figure.name);
    if (same === undefined) byName.set(figure.name, [figure]);
    else same.push(figure);
  }
  const texts: string[] = [];
  let looked = 0;
  for (const [name, same] of byName) {
    const sums = new Map<string, number>();
    for (const { values } of same) {
      for (const { labels, value, metricName = name } of values as readonly Value[]) {
        if (++looked % VALUES_A_PART === 0) yield;
        const line = lineOf(metricName, labels);
        sums.set(line, (sums.get(line) ?? 0) + value);
      }
    }
    const lines = [`# HELP ${name} ${escaped(same[0]!.help)}`, `# TYPE ${name} ${same[0]!.type}`];
    for (const [line, sum] of sums) {
      if (++looked % VALUES_A_PART === 0) yield;
      lines.push(`${line} ${shown(sum)}`);
    }
    texts.push(lines.join("\n"));
  }
  return `${texts.join("\n\n")}\n`;
}

interface Value {
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
  /** Of a histogram's parts. */
  readonly metricName?: string;
}

/** What stands before the number. */
function lineOf(name: string, labels: Value["labels"]): string {
  let text = "";
  for (const label in labels) text += `${text === "" ? "" : ","}${label}="${escapedValue(labels[label]!)}"`;
  return text === "" ? name : `${name}{${text}}`;
}

function escapedValue(value: string | number): string {
  return typeof value === "number" ? String(value) : escaped(value).replace(/"/g, '\\"');
}

function escaped(text: string): string {
  return text.replace(/\\/g, "\\\\").replace(/\n/g, "\\n");
}

function shown(value: number): string {
  if (Number.isNaN(value)) return "Nan";
  if (Number.isFinite(value)) return String(value);
  return value > 0 ? "+Inf" : "-Inf";
}
