import { GuidevaneError, problem, showProblem } from "@guidevane/core";
import { parse } from "csv-parse/sync";
import type { Deployment, LoadCurve, LoadCurves, LoadPoint } from "./load-curve.ts";

/**
 * Reads measured points: CSV with a header, one point a row. A curve is the rows of one deployment and workload. Columns:
 *
 * | column | meaning |
 * |---|---|
 * | `isl`, `osl` | prompt and output tokens of a request |
 * | `load_var`, `load_value` | how load was made: `concurrency` or `concurrent_users` (closed loop, requests in flight), `request_rate_rps` or `target_qps` (open loop, requests/s) |
 * | `ttft_mean_ms`, `ttft_ms` or `ttft_p50_ms` | time to first token; the first of these that is not empty |
 * | `tpot_mean_ms`, `tpot_ms` or `tpot_p50_ms` | time between output tokens, likewise |
 *
 * and, where there: `ttft_p50_ms`, `ttft_p99_ms`, `req_per_s` (finished, of the whole deployment: in an open loop more sent
 * than finish are beyond it), `gpu`, `gpu_count`, `model`, `precision`, `engine`, `engine_version`, `mode`, `parallel`,
 * `source`, `note` (rows that say `suspect` are left out). Other columns are passed over. Of several rows at one load level
 * the median counts.
 *
 * @throws GuidevaneError `bad_points`, naming the line and what is wrong with it
 */
export function parseLoadPoints(text: string, name: string): LoadCurves {
  const rows = readRows(text, name);
  const left: Record<string, number> = {};
  const groups = new Map<string, Group[]>();
  for (const { row, line } of rows) {
    const read = readPoint(row, line, name);
    if (typeof read === "string") {
      left[read] = (left[read] ?? 0) + 1;
      continue;
    }
    const { head, point, level } = read;
    const { promptTokens, outputTokens, ...rest } = head;
    const key = JSON.stringify(rest);
    const alike = groups.get(key) ?? [];
    groups.set(key, alike);
    let group = alike.find(
      (each) => isAlike(each.head.promptTokens, promptTokens) && isAlike(each.head.outputTokens, outputTokens),
    );
    if (group === undefined) {
      group = { head, levels: new Map() };
      alike.push(group);
    }
    const same = group.levels.get(level);
    if (same === undefined) group.levels.set(level, [point]);
    else same.push(point);
  }
  return {
    left,
    curves: [...groups.values()].flat().map(({ head, levels }) => ({
      ...head,
      points: [...levels.values()].map(medianPoint).sort((a, b) => a.inFlight - b.inFlight),
    })),
  };
}

interface Group {
  /** Of its first row. */
  readonly head: Omit<LoadCurve, "points">;
  readonly levels: Map<number, LoadPoint[]>;
}

/** Where requests are drawn at random the mean lengths of two levels of one workload differ a little. */
function isAlike(a: number, b: number): boolean {
  return Math.abs(a / b - 1) <= SAME_LENGTH;
}

const SAME_LENGTH = 0.02;

type Row = Readonly<Record<string, string>>;

function readRows(text: string, name: string): { row: Row; line: number }[] {
  try {
    // Before any row: one of another length says nothing of a file that is no such table at all.
    const columns = (header: string[]): string[] => {
      const missing = ["isl", "osl", "load_var", "load_value"].find((column) => !header.includes(column));
      if (missing !== undefined)
        throw new GuidevaneError(
          "bad_points",
          `${name}: no log of requests, and no points: the header must name ${missing}`,
        );
      return header;
    };
    const records = parse(text, { columns, bom: true, info: true, skip_empty_lines: true, trim: true }) as {
      record: Row;
      info: { lines: number };
    }[];
    return records.map(({ record, info }) => ({ row: record, line: info.lines }));
  } catch (error) {
    if (GuidevaneError.is(error)) throw error;
    throw new GuidevaneError("bad_points", `${name}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

interface ReadPoint {
  readonly head: Omit<LoadCurve, "points">;
  readonly point: LoadPoint;
  readonly level: number;
}

const LOOPS: Readonly<Record<string, LoadCurve["loop"]>> = {
  concurrency: "closed",
  concurrent_users: "closed",
  request_rate_rps: "open",
  target_qps: "open",
};

/** The point of a row, or why it is left out. @throws GuidevaneError `bad_points` */
function readPoint(row: Row, line: number, name: string): ReadPoint | string {
  if (/suspect/.test(row.note ?? "")) return "marked suspect";
  const loop = LOOPS[row.load_var ?? ""];
  if (loop === undefined) return `load_var ${row.load_var || "empty"} is no steady load`;
  const number = (column: string): number | null => {
    const said = row[column] ?? "";
    if (said === "") return null;
    const value = Number(said);
    if (!Number.isFinite(value) || value <= 0)
      throw new GuidevaneError(
        "bad_points",
        `${name} line ${line}: ${showProblem(problem("invalid_value", column, said, "must be a number above 0"))}`,
      );
    return value;
  };
  const first = (columns: readonly string[]): { value: number; column: string } | null => {
    for (const column of columns) {
      const value = number(column);
      if (value !== null) return { value, column };
    }
    return null;
  };
  const [promptTokens, outputTokens, level] = [number("isl"), number("osl"), number("load_value")];
  if (promptTokens === null || outputTokens === null) return "isl or osl is empty";
  if (level === null) return "load_value is empty";
  const ttft = first(["ttft_mean_ms", "ttft_ms", "ttft_p50_ms"]);
  const tbot = first(["tpot_mean_ms", "tpot_ms", "tpot_p50_ms"]);
  if (ttft === null || tbot === null) return "ttft or tpot is empty";

  const e2eMs = ttft.value + outputTokens * tbot.value;
  const ratePerS = loop === "closed" ? (1000 * level) / e2eMs : (number("req_per_s") ?? level);
  const inFlight = loop === "closed" ? level : (ratePerS * e2eMs) / 1000;
  const deployment: Deployment = {
    gpu: row.gpu ?? "",
    gpuCount: number("gpu_count"),
    model: row.model ?? "",
    precision: row.precision ?? "",
    engine: row.engine ?? "",
    engineVersion: row.engine_version ?? "",
    mode: row.mode ?? "",
    parallel: row.parallel ?? "",
  };
  const statistic = ttft.column === "ttft_p50_ms" ? "p50" : ttft.column === "ttft_mean_ms" ? "mean" : statOf(row);
  return {
    level,
    head: { deployment, promptTokens, outputTokens, loop, statistic, source: row.source ?? "" },
    point: {
      inFlight,
      ratePerS,
      offeredPerS: loop === "closed" ? null : level,
      ttftMs: ttft.value,
      tbotMs: tbot.value,
      ttftP50Ms: number("ttft_p50_ms"),
      ttftP99Ms: number("ttft_p99_ms"),
      requests: null,
    },
  };
}

function statOf(row: Row): LoadCurve["statistic"] {
  return row.ttft_stat === "mean" || row.ttft_stat === "p50" ? row.ttft_stat : "unspecified";
}

function medianPoint(points: readonly LoadPoint[]): LoadPoint {
  if (points.length === 1) return points[0]!;
  const median = (values: readonly number[]): number => {
    const sorted = [...values].sort((a, b) => a - b);
    const middle = sorted.length >> 1;
    return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
  };
  const of = (name: "inFlight" | "ratePerS" | "ttftMs" | "tbotMs"): number =>
    median(points.map((point) => point[name]));
  const known = (name: "ttftP50Ms" | "ttftP99Ms"): number | null => {
    const values = points.map((point) => point[name]).filter((value) => value !== null);
    return values.length < points.length ? null : median(values);
  };
  return {
    inFlight: of("inFlight"),
    ratePerS: of("ratePerS"),
    offeredPerS: points[0]!.offeredPerS,
    ttftMs: of("ttftMs"),
    tbotMs: of("tbotMs"),
    ttftP50Ms: known("ttftP50Ms"),
    ttftP99Ms: known("ttftP99Ms"),
    requests: null,
  };
}
