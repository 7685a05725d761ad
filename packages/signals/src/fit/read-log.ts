import { Readable } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import { GuidevaneError } from "@guidevane/core";
import { CsvError, parse } from "csv-parse";
import { aiperfCells, vllmRecords } from "./bench-formats.ts";
import type { Deployment } from "./load-curve.ts";
import { type Cells, checkColumns, GROUP_COLUMNS, type Place, readGroup, readRecord } from "./log-record.ts";
import { LoggedRun, type RequestLog } from "./request-log.ts";

/** A file of requests, given chunk by chunk so that it need not fit into memory. */
export interface LogFile {
  readonly name: string;
  readonly chunks: AsyncIterable<Uint8Array>;
}

/**
 * Reads logs of requests: CSV with a header or JSONL, one request a record (docs/profiles.md has the columns), the
 * `profile_export.jsonl` of aiperf, or what `vllm bench serve --save-result --save-detailed` writes. Each file has a clock
 * of its own.
 *
 * @param otherwise what the files do not say of the deployment
 * @throws GuidevaneError `bad_log`, naming the line and what is wrong with it
 */
export async function readRequestLog(
  files: readonly LogFile[],
  otherwise: Partial<Deployment> = {},
): Promise<RequestLog> {
  const collected = new Collected(otherwise);
  for (const { name, chunks } of files) {
    const first = await firstCharacter(chunks[Symbol.asyncIterator]());
    if (first.character === "{" || first.character === "[") await readJson(name, first.rest, collected);
    else await readCsv(name, first.rest, collected);
    collected.endFile(name);
  }
  return { runs: [...collected.runs.values()], left: collected.left };
}

/** A record may not be longer; one that is has a quote or a line that never ends. */
const CSV_RECORD_MAX = 1 << 20;
/** Results of vLLM are one line with all texts in it. */
const JSON_LINE_MAX = 64 << 20;
/** Some 140 MB of memory, and as much again to find their levels. */
const REQUESTS_MAX = 5_000_000;

class Collected {
  readonly runs = new Map<string, LoggedRun>();
  readonly left: Record<string, number> = {};
  readonly #otherwise: Partial<Deployment>;
  readonly #clocks = new Map<string, Clock>();
  #size = 0;

  constructor(otherwise: Partial<Deployment>) {
    this.#otherwise = otherwise;
  }

  add(cells: Cells, place: Place, groupKey: string): void {
    const request = readRecord(cells, place);
    if (typeof request === "string") {
      this.left[request] = (this.left[request] ?? 0) + 1;
      return;
    }
    this.#size += 1;
    if (this.#size > REQUESTS_MAX)
      throw new GuidevaneError("bad_log", `${place.file} line ${place.line}: more than ${REQUESTS_MAX} requests`);
    const key = `${place.file}\n${groupKey}`;
    let run = this.runs.get(key);
    if (run === undefined) {
      run = new LoggedRun(readGroup(cells, place, this.#otherwise, place.file));
      this.runs.set(key, run);
    }
    run.add(request);
    const clock = this.#clocks.get(run.group.run) ?? new Clock();
    this.#clocks.set(run.group.run, clock);
    clock.see(request.startMs, request.e2eMs, place.line);
  }

  endFile(file: string): void {
    for (const clock of this.#clocks.values()) clock.check(file);
    this.#clocks.clear();
  }
}

/**
 * Requests are logged at their start or at their end, so their starts may go back by as much as a request takes. A step back
 * beyond that is a clock that was set, or two runs in a row: counted as one they would weigh on each other. Where such steps
 * are many the rows are in no order of time at all, and say nothing.
 */
class Clock {
  #rows = 0;
  #latestMs = Number.NEGATIVE_INFINITY;
  #longestMs = 0;
  #steps = 0;
  #first: { line: number; byMs: number } | null = null;

  see(startMs: number, e2eMs: number, line: number): void {
    this.#rows += 1;
    this.#longestMs = Math.max(this.#longestMs, e2eMs);
    const byMs = this.#latestMs - startMs;
    if (byMs > this.#longestMs + CLOCK_SLACK_MS) {
      this.#steps += 1;
      this.#first ??= { line, byMs };
      this.#latestMs = startMs;
    } else this.#latestMs = Math.max(this.#latestMs, startMs);
  }

  check(file: string): void {
    if (this.#first === null || this.#steps > UNORDERED_PART * this.#rows) return;
    const { line, byMs } = this.#first;
    throw new GuidevaneError(
      "bad_log",
      `${file} line ${line}: start: goes back by ${Math.round(byMs)} ms; runs with a clock each need a run column or a file each, rows of one clock must be sorted by start`,
    );
  }
}

const CLOCK_SLACK_MS = 1000;
const UNORDERED_PART = 0.05;

async function readCsv(name: string, chunks: AsyncIterable<Uint8Array>, into: Collected): Promise<void> {
  const parser = parse({ bom: true, info: true, skip_empty_lines: true, trim: true, max_record_size: CSV_RECORD_MAX });
  const source = Readable.from(chunks);
  source.on("error", (error) => parser.destroy(error));
  source.pipe(parser);
  let columns: ReadonlyMap<string, number> | null = null;
  let groupAt: readonly number[] = [];
  try {
    for await (const { record, info } of parser as AsyncIterable<{ record: string[]; info: { lines: number } }>) {
      if (columns === null) {
        checkColumns(record, name);
        columns = new Map(record.map((column, at) => [column, at]));
        groupAt = GROUP_COLUMNS.flatMap((column) => columns!.get(column) ?? []);
        continue;
      }
      const at = columns;
      const cells = (column: string): unknown => record[at.get(column) ?? -1];
      into.add(cells, { file: name, line: info.lines }, groupAt.map((index) => record[index]).join("\n"));
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    throw new GuidevaneError("bad_log", `${name} line ${error.lines ?? 1}: ${error.message}`, { cause: error });
  } finally {
    source.destroy();
  }
}

async function readJson(name: string, chunks: AsyncIterable<Uint8Array>, into: Collected): Promise<void> {
  for await (const { text, line } of linesOf(name, chunks)) {
    if (text.trim() === "") continue;
    const place = { file: name, line };
    const record = parseObject(text, place);
    for (const each of vllmRecords(record, place) ?? [aiperfCells(record, place) ?? record]) {
      const cells = (column: string): unknown => each[column];
      into.add(cells, place, GROUP_COLUMNS.map((column) => String(each[column] ?? "")).join("\n"));
    }
  }
}

function parseObject(text: string, { file, line }: Place): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new GuidevaneError(
    "bad_log",
    `${file} line ${line}: must be one JSON object a line (got ${JSON.stringify(text.slice(0, 80))})`,
  );
}

async function* linesOf(
  name: string,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<{ text: string; line: number }> {
  const decoder = new StringDecoder("utf8");
  let rest = "";
  let line = 0;
  for await (const chunk of chunks) {
    const parts = (rest + decoder.write(Buffer.from(chunk))).split("\n");
    rest = parts.pop()!;
    for (const text of parts) yield { text, line: ++line };
    if (rest.length > JSON_LINE_MAX)
      throw new GuidevaneError("bad_log", `${name} line ${line + 1}: longer than ${JSON_LINE_MAX} characters`);
  }
  rest += decoder.end();
  if (rest !== "") yield { text: rest, line: line + 1 };
}

/** The first character that is no space or byte order mark, and the chunks with that mark cut off. */
async function firstCharacter(
  chunks: AsyncIterator<Uint8Array>,
): Promise<{ character: string; rest: AsyncIterable<Uint8Array> }> {
  let first = await chunks.next();
  while (!first.done && first.value.length < BOM.length) {
    const next = await chunks.next();
    if (next.done) break;
    first = { done: false, value: Buffer.concat([first.value, next.value]) };
  }
  const head = first.done ? Buffer.alloc(0) : Buffer.from(first.value);
  const begins = head.subarray(0, BOM.length).equals(BOM) ? head.subarray(BOM.length) : head;
  async function* rest(): AsyncGenerator<Uint8Array> {
    yield begins;
    for (let next = await chunks.next(); !next.done; next = await chunks.next()) yield next.value;
  }
  return { character: begins.toString("latin1").trimStart()[0] ?? "", rest: rest() };
}

const BOM = Buffer.from([0xef, 0xbb, 0xbf]);
