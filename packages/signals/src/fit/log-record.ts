import { GuidevaneError, problem, showProblem } from "@guidevane/core";
import type { Deployment } from "./load-curve.ts";
import type { LogGroup, LoggedRequest } from "./request-log.ts";

/** Value of a column; empty, null and undefined are all "not said". */
export type Cells = (column: string) => unknown;

/** Where a record stands, for messages. */
export interface Place {
  readonly file: string;
  readonly line: number;
}

/** Columns that say one thing, and what one of each is in ms or tokens. The first that is not empty counts. */
const START: Columns = [
  ["start_s", 1000],
  ["start_ms", 1],
  ["start_us", 1e-3],
  ["start_ns", 1e-6],
];
const PROMPT: Columns = [
  ["prompt_tokens", 1],
  ["input_tokens", 1],
];
const OUTPUT: Columns = [
  ["output_tokens", 1],
  ["completion_tokens", 1],
];
const TTFT: Columns = [
  ["ttft_ms", 1],
  ["ttft_s", 1000],
];
const E2E: Columns = [
  ["e2e_ms", 1],
  ["e2e_s", 1000],
  ["latency_ms", 1],
  ["latency_s", 1000],
];
const END: Columns = [
  ["end_s", 1000],
  ["end_ms", 1],
  ["end_us", 1e-3],
  ["end_ns", 1e-6],
];
const TBOT: Columns = [
  ["tbot_ms", 1],
  ["tbot_s", 1000],
  ["tpot_ms", 1],
  ["tpot_s", 1000],
];
type Columns = readonly (readonly [name: string, factor: number])[];

const NEEDED: readonly (readonly [what: string, columns: readonly string[]])[] = [
  ["a start", [...START.map(([name]) => name), "start"]],
  ["prompt tokens", PROMPT.map(([name]) => name)],
  ["output tokens", OUTPUT.map(([name]) => name)],
  ["a time to the first token", TTFT.map(([name]) => name)],
  ["an end", [...E2E, ...END, ...TBOT].map(([name]) => name)],
];

/** No request takes longer than a day, and no prompt has more tokens: what says so is in another unit. */
const TIME_MAX_MS = 86_400_000;
const TOKENS_MAX = 1e8;
/** Of instants: beyond, a clock's nanoseconds were taken for milliseconds. */
const INSTANT_MAX_MS = 1e15;
/** Logs round their times. */
const ROUNDING_MS = 1;

/** @throws GuidevaneError `bad_log` naming what no column says */
export function checkColumns(names: readonly string[], file: string): void {
  for (const [what, columns] of NEEDED)
    if (!columns.some((column) => names.includes(column)))
      throw new GuidevaneError(
        "bad_log",
        `${file} line 1: the header names no column for ${what}: one of ${columns.join(", ")} (got ${JSON.stringify(names.join(",").slice(0, 200))})`,
      );
}

/** The request of a record, or why it is left out. @throws GuidevaneError `bad_log` for a value that can't be */
export function readRecord(cells: Cells, place: Place): LoggedRequest | string {
  if (hasFailed(cells)) return "failed requests";
  const first = (columns: Columns, least: number, most: number): { value: number; column: string } | null => {
    for (const [column, factor] of columns) {
      const said = cells(column);
      if (isEmpty(said)) continue;
      return { value: numberOf(said, column, place, factor, least, most), column };
    }
    return null;
  };
  const startMs = first(START, -INSTANT_MAX_MS, INSTANT_MAX_MS)?.value ?? instantOf(cells("start"), place);
  const promptTokens = first(PROMPT, 0, TOKENS_MAX)?.value;
  const outputTokens = first(OUTPUT, 0, TOKENS_MAX)?.value;
  const ttft = first(TTFT, 0, TIME_MAX_MS);
  if (startMs === null || promptTokens === undefined || outputTokens === undefined || ttft === null)
    return "start, tokens or TTFT empty";
  if (outputTokens === 0) return "answers without a token";
  if (ttft.value === 0) return "no first token";
  const e2e =
    first(E2E, 0, TIME_MAX_MS) ??
    since(startMs, first(END, -INSTANT_MAX_MS, INSTANT_MAX_MS), place) ??
    after(ttft.value, outputTokens, first(TBOT, 0, TIME_MAX_MS));
  if (e2e === null) return "no end";
  if (e2e.value < ttft.value - ROUNDING_MS)
    bad(place, e2e.column, `${e2e.value} ms`, `must be no less than the time to the first token, ${ttft.value} ms`);
  return {
    startMs,
    promptTokens,
    cachedTokens: cachedTokens(cells, promptTokens, place),
    outputTokens,
    ttftMs: ttft.value,
    e2eMs: Math.max(e2e.value, ttft.value),
  };
}

export function readGroup(cells: Cells, place: Place, otherwise: Partial<Deployment>, file: string): LogGroup {
  const text = (column: string): string => (isEmpty(cells(column)) ? "" : String(cells(column)));
  const gpus = cells("gpu_count");
  return {
    deployment: {
      gpu: text("gpu") || (otherwise.gpu ?? ""),
      gpuCount: isEmpty(gpus) ? null : numberOf(gpus, "gpu_count", place, 1, 1, 1e6),
      model: text("model") || (otherwise.model ?? ""),
      precision: text("precision"),
      engine: text("engine"),
      engineVersion: text("engine_version"),
      mode: text("mode"),
      parallel: text("parallel"),
    },
    workload: text("workload"),
    run: `${file} ${text("run")}`,
  };
}

/** What tells groups apart. */
export const GROUP_COLUMNS = [
  "gpu",
  "gpu_count",
  "model",
  "precision",
  "engine",
  "engine_version",
  "mode",
  "parallel",
  "workload",
  "run",
];

type Said = { readonly value: number; readonly column: string } | null;

function since(startMs: number, end: Said, place: Place): Said {
  if (end === null) return null;
  const value = end.value - startMs;
  if (value < 0 || value > TIME_MAX_MS)
    bad(place, end.column, `${value} ms after its start`, "must be within a day after the request's start");
  return { value, column: end.column };
}

function after(ttftMs: number, outputTokens: number, tbot: Said): Said {
  return tbot === null ? null : { value: ttftMs + (outputTokens - 1) * tbot.value, column: tbot.column };
}

const OK = /^(|ok|success|succeeded|true|1|2\d\d|stop|length|null|none)$/i;

function hasFailed(cells: Cells): boolean {
  const text = (column: string): string => (isEmpty(cells(column)) ? "" : String(cells(column)));
  return !OK.test(text("status")) || !OK.test(text("success")) || !OK.test(text("error"));
}

function cachedTokens(cells: Cells, promptTokens: number, place: Place): number {
  const tokens = cells("cached_tokens");
  if (!isEmpty(tokens)) return Math.min(promptTokens, numberOf(tokens, "cached_tokens", place, 1, 0, TOKENS_MAX));
  const percent = cells("cached_pct");
  return isEmpty(percent) ? 0 : (promptTokens * numberOf(percent, "cached_pct", place, 1, 0, 100)) / 100;
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || value === "";
}

/** An instant as text; one without a zone is UTC. */
function instantOf(said: unknown, place: Place): number | null {
  if (isEmpty(said)) return null;
  const text = String(said);
  const atMs = ISO.test(text) ? Date.parse(/(Z|[+-]\d\d:?\d\d)$/i.test(text) ? text : `${text}Z`) : Number.NaN;
  if (Number.isNaN(atMs)) bad(place, "start", said, "must be an ISO 8601 instant; numbers go into start_s or start_ms");
  return atMs;
}

const ISO = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d/;

function numberOf(said: unknown, column: string, place: Place, factor: number, least: number, most: number): number {
  const value = typeof said === "number" ? said : typeof said === "string" ? Number(said) : Number.NaN;
  const scaled = value * factor;
  // A range check also refuses NaN.
  if (!(scaled >= least && scaled <= most))
    bad(place, column, said, `must be a number from ${least / factor} to ${most / factor}`);
  return scaled;
}

function bad({ file, line }: Place, column: string, said: unknown, message: string): never {
  const what = problem("invalid_value", column, said, message);
  throw new GuidevaneError("bad_log", `${file} line ${line}: ${showProblem(what)}`, { problems: [what] });
}
