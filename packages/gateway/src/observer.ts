import { AnswerDocuments } from "./answer-document.ts";
import type { AnswerError } from "./answer-error.ts";
import type { AnswerFacts } from "./answer-facts.ts";
import { type AnswerKind, answerKind } from "./answer-kind.ts";
import { BODY_ROOT, EVENT_ROOT } from "./answer-paths.ts";
import { EventReader, type EventSink } from "./event-reader.ts";
import { EventTemplate } from "./event-template.ts";

/**
 * Reads beside an answer while it is passed on: usage, finish reasons, error events, terminators, first content. It gets
 * views of the bytes and keeps none, so it can neither change nor hold up the answer; a fault of its own ends the reading
 * and nothing else.
 */
export class AnswerObserver implements EventSink {
  readonly #onFailure: (error: unknown) => void;
  readonly #documents: AnswerDocuments;
  /** These two of a stream alone. */
  readonly #reader: EventReader | null;
  readonly #template: EventTemplate | null;
  readonly #choices: number;
  readonly #onResponseId: (id: string) => void;
  #responseIdTold = false;
  #kind: AnswerKind;
  #unread: string | null;
  #nowMs = 0;

  /** What the data of the event at hand began with. */
  #data: number = DATA.nothing;
  #donePlace = 0;

  #events = 0;
  #failedAt = 0;
  #error: AnswerError | null = null;
  #isOver = false;
  #bodyEnded = false;
  #contentEvents = 0;
  #malformedEvents = 0;
  #firstEventMs: number | null = null;
  #firstContentMs: number | null = null;
  #lastContentMs = 0;

  /**
   * @param headers names and values in turn
   * @param onFailure told of a fault in the observer itself
   * @param choices how many the request asked for
   * @param onResponseId told the id of an answer of the Responses API, once, as soon as it is read
   */
  constructor(
    status: number,
    headers: readonly string[],
    onFailure: (error: unknown) => void,
    choices: number = 1,
    onResponseId: (id: string) => void = ignore,
  ) {
    this.#choices = choices;
    this.#onResponseId = onResponseId;
    const { kind, unread } = answerKind(status, headers);
    this.#kind = kind;
    this.#unread = unread;
    this.#documents = new AnswerDocuments(this.#kind === "events" ? EVENT_ROOT : BODY_ROOT);
    this.#reader = kind === "events" ? new EventReader(this) : null;
    this.#template = kind === "events" ? new EventTemplate() : null;
    this.#onFailure = onFailure;
  }

  /** The next piece of the answer. Never throws. */
  see(chunk: Buffer, nowMs: number): void {
    if (this.#kind === "unread") return;
    this.#nowMs = nowMs;
    try {
      if (this.#reader !== null) this.#read(chunk, this.#reader, this.#template!);
      else {
        this.#documents.push(chunk, 0, chunk.length);
        this.#documents.takeBodyId();
      }
      this.#tellResponseId();
    } catch (error) {
      this.#fail(error);
    }
  }

  /** The answer's body is over. Never throws. */
  end(): void {
    if (this.#kind === "unread" || this.#bodyEnded) return;
    this.#bodyEnded = true;
    try {
      if (this.#reader !== null) this.#reader.end();
      else this.#endBody();
      this.#tellResponseId();
    } catch (error) {
      this.#fail(error);
    }
  }

  /** `unread` where nothing can be said about the answer: then no other getter says anything. */
  get kind(): AnswerKind {
    return this.#kind;
  }

  /** Whole events that are no comment, no ping and not empty. */
  get events(): number {
    return this.#events;
  }

  /** Which event was the first error, counted from 1; 0 = none. */
  get failedAt(): number {
    return this.#failedAt;
  }

  get error(): AnswerError | null {
    return this.#error;
  }

  /** Whether an error was among it. Not undone by a `[DONE]`, which vLLM sends after its errors too. */
  get failed(): boolean {
    return this.#error !== null;
  }

  /**
   * Whether the answer said that it is over: `[DONE]`, `message_stop`, `response.completed`, `-incomplete`, `-failed`; of a
   * document, its last bracket.
   */
  get terminated(): boolean {
    if (this.#kind === "json") return this.#documents.whole;
    return this.#isOver || this.#donePlace === DONE.length;
  }

  /**
   * Whether an answer whose body ends well now is all there: terminated, or a finish reason of every choice, for some
   * servers send nothing after that.
   */
  get whole(): boolean {
    return this.terminated || (this.#kind === "events" && this.#documents.finished(this.#choices));
  }

  /** Whether another event may be written after what came. */
  get betweenEvents(): boolean {
    return this.#reader?.betweenEvents ?? true;
  }

  /** When the first event that counts was whole, by the clock of `see`. */
  get firstEventMs(): number | null {
    return this.#firstEventMs;
  }

  /** When the first event with content (text, reasoning, a tool call) was whole: not a ping, not a role alone. */
  get firstContentMs(): number | null {
    return this.#firstContentMs;
  }

  facts(): AnswerFacts {
    const { finish, responseId, usageTold, tokens } = this.#documents;
    const byEvents = !usageTold && this.#contentEvents > 0;
    const isWhole = this.whole && this.#error === null;
    return {
      promptTokens: tokens.prompt,
      completionTokens: byEvents ? this.#contentEvents : tokens.completion,
      cachedTokens: tokens.cached,
      tokensFrom: usageTold ? (isWhole ? "usage" : "partial") : byEvents ? "events" : null,
      finish,
      responseId,
      firstContentMs: this.#firstContentMs,
      tbotMs: this.#tbotMs(byEvents ? this.#contentEvents : tokens.completion),
      contentEvents: this.#contentEvents,
      malformedEvents: this.#malformedEvents,
      error: this.#error,
      unread: this.#unread,
    };
  }

  data(bytes: Buffer, start: number, end: number): void {
    let at = start;
    if (this.#data === DATA.nothing) {
      while (at < end && isSpace(bytes[at]!)) at += 1;
      if (at === end) return;
      const first = bytes[at]!;
      this.#data = first === OPEN_OBJECT ? DATA.json : first === DONE[0] ? DATA.done : DATA.other;
      if (this.#data === DATA.json) this.#documents.begin();
    }
    if (this.#data === DATA.json) this.#documents.push(bytes, at, end);
    else if (this.#data === DATA.done) this.#matchDone(bytes, at, end);
  }

  event(name: string): void {
    const data = this.#data;
    this.#data = DATA.nothing;
    if (data === DATA.nothing || name === "ping" || name === "keepalive") return;
    if (data === DATA.done) {
      if (this.#donePlace === DONE.length) this.#isOver = true;
      else this.#malformedEvents += 1;
      this.#donePlace = 0;
      this.#count();
      return;
    }
    const documents = this.#documents;
    const isWhole = data === DATA.json && documents.whole;
    if (!isWhole) this.#malformedEvents += 1;
    if (data === DATA.json && documents.type === "ping") return;
    this.#count();
    if (data === DATA.other) documents.begin();
    const error = documents.error(name === "error");
    if (error !== null) this.#failWith(error);
    if (!isWhole) return;
    if (documents.endsStream) {
      this.#isOver = true;
      documents.takeStatus();
    }
    if (documents.hasContent) this.#countContent();
  }

  /** Events that are as one before say what it said, and are counted alone; the reader gets what is left. */
  #read(chunk: Buffer, reader: EventReader, template: EventTemplate): void {
    let at = 0;
    if (reader.betweenEvents) {
      for (let end = template.endOf(chunk, 0); end > 0; end = template.endOf(chunk, at)) {
        this.#count();
        this.#countContent();
        at = end;
      }
      if (at === chunk.length) return;
    }
    const rest = at === 0 ? chunk : chunk.subarray(at);
    const isWhole = reader.betweenEvents;
    const [events, contentEvents] = [this.#events, this.#contentEvents];
    reader.push(rest);
    if (!isWhole || !reader.betweenEvents || this.#error !== null || this.#isOver) return;
    const { textStart, textEnd } = this.#documents;
    if (this.#events === events + 1 && this.#contentEvents === contentEvents + 1 && textStart > 0)
      template.learn(rest, 0, rest.length, textStart, textEnd);
  }

  #countContent(): void {
    this.#contentEvents += 1;
    this.#firstContentMs ??= this.#nowMs;
    this.#lastContentMs = this.#nowMs;
  }

  #count(): void {
    this.#events += 1;
    this.#firstEventMs ??= this.#nowMs;
  }

  #failWith(error: AnswerError): void {
    if (this.#error !== null) return;
    this.#error = error;
    this.#failedAt = this.#events;
  }

  /** Spaces may stand after it. */
  #matchDone(bytes: Buffer, start: number, end: number): void {
    for (let at = start; at < end; at++) {
      const byte = bytes[at]!;
      if (this.#donePlace < DONE.length && byte === DONE[this.#donePlace]) this.#donePlace += 1;
      else if (this.#donePlace !== DONE.length || !isSpace(byte)) {
        this.#data = DATA.other;
        this.#donePlace = 0;
        return;
      }
    }
  }

  #tellResponseId(): void {
    const id = this.#documents.responseId;
    if (id === null || this.#responseIdTold) return;
    this.#responseIdTold = true;
    this.#onResponseId(id);
  }

  #endBody(): void {
    const documents = this.#documents;
    if (!documents.whole) this.#malformedEvents += 1;
    documents.takeBodyId();
    documents.takeStatus();
    const error = documents.error(false);
    if (error !== null) this.#failWith(error);
  }

  #tbotMs(tokens: number | null): number | null {
    if (this.#firstContentMs === null || this.#contentEvents < 2 || tokens === null || tokens < 2) return null;
    return (this.#lastContentMs - this.#firstContentMs) / (tokens - 1);
  }

  #fail(error: unknown): void {
    this.#kind = "unread";
    this.#unread = "the observer failed";
    this.#onFailure(error);
  }
}

const DATA = { nothing: 0, json: 1, done: 2, other: 3 } as const;
const OPEN_OBJECT = 0x7b;
const DONE: Uint8Array = Buffer.from("[DONE]");

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

function ignore(): void {}
