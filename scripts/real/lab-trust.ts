/**
 * How far the means of a sweep's levels can be trusted. Requests under load are late together, so their spread says too little: a
 * level is cut into `PARTS` parts of equal time, and the spread of the parts' means is what chance does to the whole.
 */
const PARTS = 8;
/** Twice the uncertainty of a mean beyond which a fit to it says little. */
const TRUSTED = 0.25;

/** One level of one engine. */
interface Level {
  readonly run: string;
  readonly rows: { readonly startMs: number; readonly e2eMs: number }[];
}

/** @param log as `sweep` writes it; a sentence for each level that is uncertain, and one for all */
export function sweepTrust(log: string): string {
  const levels = new Map<string, Level>();
  for (const line of log.split("\n").slice(1)) {
    const [, workload, run, startMs, , , , e2eMs] = line.split(",");
    if (e2eMs === undefined) continue;
    const key = `${run} ${workload}`;
    if (!levels.has(key)) levels.set(key, { run: key, rows: [] });
    levels.get(key)!.rows.push({ startMs: Number(startMs), e2eMs: Number(e2eMs) });
  }
  const all = [...levels.values()].map((level) => ({ level, ...uncertaintyOf(level) }));
  const doubtful = all.filter(({ relative }) => 2 * relative > TRUSTED);
  const sorted = all.map(({ relative }) => relative).sort((a, b) => a - b);
  const percent = (part: number) => `${(100 * part).toFixed(0)} %`;
  const lines = doubtful.map(
    ({ level, meanMs, relative }) =>
      `doubtful: ${level.run}: E2E ${meanMs.toFixed(0)} ms ± ${percent(2 * relative)} (${level.rows.length} requests)`,
  );
  const median = sorted[sorted.length >> 1] ?? Number.NaN;
  lines.push(
    `means of E2E of the sweep's ${all.length} levels are uncertain by ± ${percent(2 * median)} in the median, ± ${percent(2 * (sorted.at(-1) ?? Number.NaN))} at worst (two standard errors)`,
  );
  return lines.join("\n");
}

/** The mean and its standard error, relative. */
function uncertaintyOf({ rows }: Level): { readonly meanMs: number; readonly relative: number } {
  const [from, to] = [Math.min(...rows.map(({ startMs }) => startMs)), Math.max(...rows.map(({ startMs }) => startMs))];
  const parts = Array.from({ length: PARTS }, () => ({ sum: 0, count: 0 }));
  for (const { startMs, e2eMs } of rows) {
    const part = parts[Math.min(PARTS - 1, Math.floor((PARTS * (startMs - from)) / (to - from)))]!;
    part.sum += e2eMs;
    part.count += 1;
  }
  const meanMs = rows.reduce((sum, { e2eMs }) => sum + e2eMs, 0) / rows.length;
  // A ratio's error: parts have different counts.
  const squares = parts.reduce((sum, { sum: ms, count }) => sum + (ms - meanMs * count) ** 2, 0);
  const error = Math.sqrt((squares * PARTS) / (PARTS - 1)) / rows.length;
  return { meanMs, relative: error / meanMs };
}
