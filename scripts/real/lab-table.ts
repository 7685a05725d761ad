/** One answered request, the network apart. */
export interface Answer {
  readonly engine: string;
  readonly ttftMs: number;
  readonly e2eMs: number;
  readonly outputTokens: number;
}

/** What is compared, by name. */
export interface Figures {
  readonly share: number;
  readonly ttftMean: number;
  readonly ttftP95: number;
  readonly e2eMean: number;
  readonly e2eP95: number;
  readonly tbotMean: number;
}

const JUDGED = ["ttftMean", "ttftP95", "e2eMean", "e2eP95", "tbotMean"] as const;
const HEAD = "| engine | share | TTFT mean, ms | TTFT p95, ms | E2E mean, ms | E2E p95, ms | between tokens mean, ms |";

export function figuresOf(answers: readonly Answer[], of: number): Figures {
  const ttft = answers.map(({ ttftMs }) => ttftMs);
  const e2e = answers.map(({ e2eMs }) => e2eMs);
  const tbot = answers.flatMap(({ ttftMs, e2eMs, outputTokens }) =>
    outputTokens > 1 ? [(e2eMs - ttftMs) / (outputTokens - 1)] : [],
  );
  return {
    share: answers.length / of,
    ttftMean: mean(ttft),
    ttftP95: p95(ttft),
    e2eMean: mean(e2e),
    e2eP95: p95(e2e),
    tbotMean: mean(tbot),
  };
}

/** The mean of each figure over runs of the lab. */
function meanFigures(runs: readonly (readonly Answer[])[], pick: (answer: Answer) => boolean): Figures {
  const each = runs.map((run) => figuresOf(run.filter(pick), run.length));
  const names = Object.keys(each[0]!) as (keyof Figures)[];
  return Object.fromEntries(
    names.map((name) => [name, mean(each.map((figures) => figures[name]))]),
  ) as unknown as Figures;
}

/**
 * Each engine, then all of them: real, predicted, and how far the prediction is off. Also the largest difference of the whole
 * fleet's figures.
 */
export function compare(
  real: readonly Answer[],
  predicted: readonly (readonly Answer[])[],
  engines: readonly string[],
): { readonly table: string; readonly worst: number } {
  const row = (name: string, pick: (answer: Answer) => boolean) => {
    const [seen, said] = [figuresOf(real.filter(pick), real.length), meanFigures(predicted, pick)];
    const cells = JUDGED.map((figure) => {
      const digits = figure === "tbotMean" ? 1 : 0;
      return `${seen[figure].toFixed(digits)} / ${said[figure].toFixed(digits)} (${percent(said[figure] / seen[figure] - 1, "+")})`;
    });
    const worst = Math.max(...JUDGED.map((figure) => Math.abs(said[figure] / seen[figure] - 1)));
    return { text: `| ${name} | ${percent(seen.share)} / ${percent(said.share)} | ${cells.join(" | ")} |`, worst };
  };
  const all = row("all", () => true);
  const rows = engines.map((id) => row(id, ({ engine }) => engine === id).text);
  return { table: [HEAD, HEAD.replace(/[^|]+/g, " --- "), ...rows, all.text].join("\n"), worst: all.worst };
}

function percent(part: number, sign = ""): string {
  return `${sign !== "" && part > 0 ? sign : ""}${(100 * part).toFixed(0)} %`;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function p95(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.ceil(0.95 * sorted.length) - 1] ?? Number.NaN;
}
