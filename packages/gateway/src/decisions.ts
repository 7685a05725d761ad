import type { Clock } from "@guidevane/core";
import { KEY_SOURCES } from "@guidevane/selector";
import type { Decision, RuledOutEngine } from "./decision.ts";
import { createDraft, type DecisionDraft } from "./decision-draft.ts";
import { idOfRecord, RECORD_BYTES, readRecord, writeRecord } from "./decision-record.ts";
import { EntryLog } from "./entry-log.ts";
import { RecordReader, RecordWriter } from "./record-bytes.ts";
import { LISTED_MAX, type RuledOutList } from "./ruled-out-lists.ts";
import { RunningDecisions } from "./running-decisions.ts";

export interface DecisionsOptions {
  readonly cluster: string;
  readonly clock: Clock;
  /** Kept at most. Default 100,000. */
  readonly entries?: number;
}

/**
 * The last decisions of one thread, from their arrival on: what runs as objects, what is over as records in a log of fixed
 * size. To remember one is a few writes into memory that is there.
 */
export class Decisions {
  readonly #options: DecisionsOptions;
  readonly #log: EntryLog;
  readonly #writer: RecordWriter;
  readonly #running = new RunningDecisions();
  readonly #entries: number;

  constructor(options: DecisionsOptions) {
    this.#options = options;
    this.#entries = options.entries ?? 100_000;
    this.#log = new EntryLog({
      // Lists of ruled-out engines are entries too, a few for each `1 / LIST_AGES` of the log.
      entries: Math.ceil(this.#entries * 1.05),
      bytes: this.#entries * BYTES_PER_ENTRY + 4 * ENTRY_BYTES,
      entryBytes: ENTRY_BYTES,
    });
    this.#writer = new RecordWriter(this.#log.buffer);
  }

  /** A request has arrived. */
  begin(id: string, path: string): DecisionDraft {
    const draft = createDraft(id, tagOf(id), path, this.#options.clock.wallMs(), NO_KEY);
    this.#running.add(draft);
    return draft;
  }

  /** It is over: `draft.outcome` says how. */
  end(draft: DecisionDraft): void {
    this.#running.delete(draft);
    const list = this.#keep(draft.ruledOut);
    const at = this.#log.open();
    this.#writer.at = at;
    writeRecord(this.#writer, draft, list);
    this.#log.close(this.#writer.at - at, draft.tag);
  }

  /** The gateway failed on it, in a way that nobody foresaw. */
  fail(id: string, error: string): void {
    const draft = this.#running.find(tagOf(id), id);
    if (draft === null) return;
    draft.outcome = "fault";
    draft.error = error;
    this.end(draft);
  }

  /** It was no request to be decided on. */
  forget(draft: DecisionDraft): void {
    this.#running.delete(draft);
  }

  /** The last request with that id; null where none is kept. Plain data. */
  find(id: string): Decision | null {
    if (id.length > ID_BYTES) return null;
    const tag = tagOf(id);
    const running = this.#running.find(tag, id);
    if (running !== null) return this.#read(this.#asRecord(running), running.ruledOut?.engines);
    const record = this.#log.find(tag, (entry) => idOfRecord(entry) === id);
    return record === null ? null : this.#read(record);
  }

  /** Memory that it holds, whatever it is used for. */
  get bytes(): number {
    return this.#log.bytes;
  }

  get running(): number {
    return this.#running.size;
  }

  #read(record: Buffer, ruledOut?: readonly RuledOutEngine[]): Decision {
    return readRecord(record, this.#options.cluster, (list) => ruledOut ?? this.#listAt(list));
  }

  #asRecord(draft: DecisionDraft): Buffer {
    const buffer = Buffer.alloc(RECORD_BYTES);
    const writer = new RecordWriter(buffer);
    writeRecord(writer, draft, 0);
    return buffer.subarray(0, writer.at);
  }

  /**
   * @returns the entry of the list, 0 for an empty one. It is written again before it is old, so that it outlives the
   *   decisions that name it but for the oldest of them
   */
  #keep(list: RuledOutList | null): number {
    if (list === null || list.engines.length === 0) return 0;
    const isYoung = this.#log.entry(list.entry) !== null && this.#log.ageOf(list.entry) < this.#entries / LIST_AGES;
    if (isYoung) return list.entry;
    const at = this.#log.open();
    const writer = this.#writer;
    writer.at = at;
    const shown = list.engines.slice(0, LISTED_MAX);
    writer.count(shown.length);
    for (const { engine, by, message } of shown) {
      writer.text(engine);
      writer.text(by);
      writer.text(message);
    }
    list.entry = this.#log.close(writer.at - at, null);
    return list.entry;
  }

  #listAt(list: number): RuledOutEngine[] {
    const entry = list === 0 ? null : this.#log.entry(list);
    if (entry === null) return [];
    const from = new RecordReader(entry);
    return Array.from({ length: from.count() ?? 0 }, () => ({
      engine: from.text() ?? "",
      by: from.text() ?? "",
      message: from.text() ?? "",
    }));
  }
}

/** FNV-1a over the letters. */
function tagOf(id: string): number {
  let hash = 0x811c_9dc5;
  for (let at = 0; at < id.length; at++) hash = Math.imul(hash ^ id.charCodeAt(at), 0x0100_0193);
  return hash >>> 0;
}

/** Request ids are no longer. */
const ID_BYTES = 128;
const NO_KEY = KEY_SOURCES.indexOf("none");

/** A record of a request with a UUID and one attempt takes some 200 bytes; with long ids and retries fewer are kept. */
const BYTES_PER_ENTRY = 256;
const ENTRY_BYTES: number = Math.max(RECORD_BYTES, 4 + LISTED_MAX * 3 * 256);
const LIST_AGES = 20;
