import { type AnswerError, answerError } from "./answer-error.ts";
import { PLACE } from "./answer-paths.ts";
import { AnswerUsage, type Tokens, USAGE } from "./answer-usage.ts";
import type { PathNode } from "./json-paths.ts";
import { JsonWalker, VALUE } from "./json-walker.ts";

/**
 * Reads the documents of one answer (each event of a stream, or its whole body) and keeps what they say of it together:
 * what each one is, the answer's usage, choices, finish reason and id.
 */
export class AnswerDocuments {
  readonly #walker: JsonWalker;
  readonly #usage = new AnswerUsage();

  // Of the document at hand.
  type: string | null = null;
  object: string | null = null;
  hasContent = false;
  /** A text of the content: its place in the bytes at hand, as long as it is whole in them and not empty. */
  textStart = -1;
  textEnd = -1;
  #hasError = false;
  #errorStatus: number | null = null;
  #errorCode: string | number | null = null;
  #errorType: string | null = null;
  #responseStatus: string | null = null;
  #choiceIndex = 0;
  #choiceFinished = false;

  // Of the answer.
  finish: string | null = null;
  /** Of the Responses API: what a later request may name as the one before it. */
  responseId: string | null = null;
  #id: string | null = null;
  /** By index: whether the choice has finished. */
  readonly #choices: boolean[] = [];
  #unfinished = 0;
  #promptTimed: number | null = null;
  #completionTimed: number | null = null;
  #cachedTimed = 0;

  constructor(root: PathNode) {
    this.#walker = new JsonWalker(root, (id, kind, size) => this.#value(id, kind, size));
  }

  /** Begins another document. */
  begin(): void {
    this.#walker.reset();
    this.type = null;
    this.object = null;
    this.hasContent = false;
    this.textStart = -1;
    this.#hasError = false;
    this.#errorStatus = null;
    this.#errorCode = null;
    this.#errorType = null;
    this.#responseStatus = null;
  }

  push(bytes: Buffer, start: number, end: number): void {
    this.#walker.push(bytes, start, end);
  }

  /** Whether the document at hand is whole. */
  get whole(): boolean {
    return this.#walker.done;
  }

  /** The error that the document at hand is; null where it is none. @param named its event says that it is one */
  error(named: boolean): AnswerError | null {
    const { type, object } = this;
    const isError = named || this.#hasError || type === "error" || object === "error" || type === "response.failed";
    const failed = isError || this.#responseStatus === "failed";
    // Where the error has no inside, its type is the document's own.
    return failed
      ? answerError(this.#errorStatus, this.#errorCode, this.#errorType ?? (object === "error" ? type : null))
      : null;
  }

  /** Whether the document's type is one of a stream's end, good or bad. */
  get endsStream(): boolean {
    return this.type !== null && STREAM_ENDS.has(this.type);
  }

  /** Whether every choice that was begun has its finish reason, and `least` were begun. */
  finished(least: number): boolean {
    return this.#choices.length >= least && this.#unfinished === 0;
  }

  /** The document at hand is the last: the Responses API has a status where others have a finish reason. */
  takeStatus(): void {
    this.finish ??= this.#responseStatus;
  }

  /** A body is the Responses API's where it says so: only then is its id one that another request may name. */
  takeBodyId(): void {
    if (this.object === "response") this.responseId ??= this.#id;
  }

  get usageTold(): boolean {
    return this.#usage.told || this.#isTimed;
  }

  get tokens(): Tokens {
    if (this.#usage.told || !this.#isTimed) return this.#usage.tokens;
    const [prompt, cached] = [this.#promptTimed, this.#cachedTimed];
    return { prompt: prompt === null ? null : prompt + cached, completion: this.#completionTimed, cached };
  }

  /** llama.cpp's timings are of one choice each, so of several they say nothing about the answer. */
  get #isTimed(): boolean {
    return this.#completionTimed !== null && this.#choices.length <= 1;
  }

  #value(id: number, kind: number, size: number): void {
    if (id >= USAGE.end) {
      if (id === USAGE.end) {
        if (kind === VALUE.object) this.#usage.end();
      } else if (kind === VALUE.number) this.#usage.take(id, size);
      return;
    }
    switch (id) {
      case PLACE.content:
        // A number or a truth value in a delta is about it (vLLM's `index`), not of it.
        this.hasContent ||= kind >= VALUE.text && size > 0;
        this.#takeText(kind, size);
        return;
      case PLACE.text:
        this.#takeText(kind, size);
        return;
      case PLACE.choiceIndex:
        if (kind === VALUE.number && size >= 0 && size < CHOICES_MAX) this.#choiceIndex = size;
        return;
      case PLACE.finish:
        // An empty reason is one that is not there yet.
        if (kind !== VALUE.text || size === 0) return;
        this.#choiceFinished = true;
        this.finish = this.#walker.text;
        return;
      case PLACE.choice:
        this.#endChoice();
        return;
      case PLACE.promptTimed:
        if (kind === VALUE.number) this.#promptTimed = size;
        return;
      case PLACE.completionTimed:
        if (kind === VALUE.number) this.#completionTimed = size;
        return;
      case PLACE.cachedTimed:
        if (kind === VALUE.number) this.#cachedTimed = size;
        return;
      default:
        this.#word(id, kind, size);
    }
  }

  #takeText(kind: number, size: number): void {
    if (kind !== VALUE.text || size === 0) return;
    this.textStart = this.#walker.textStart;
    this.textEnd = this.textStart + size;
  }

  #word(id: number, kind: number, size: number): void {
    const text = kind === VALUE.text ? this.#walker.text : null;
    switch (id) {
      case PLACE.type:
        this.type = text;
        this.hasContent ||= text !== null && saysContent(text);
        return;
      case PLACE.object:
        this.object = text;
        return;
      case PLACE.blockName:
        this.hasContent ||= kind === VALUE.text && size > 0;
        return;
      case PLACE.error:
        this.#hasError ||= kind > VALUE.false && size > 0;
        return;
      case PLACE.errorCode:
        this.#errorCode ??= kind === VALUE.number ? size : text;
        return;
      case PLACE.errorStatus:
        if (kind === VALUE.number) this.#errorStatus = size;
        return;
      case PLACE.errorType:
        this.#errorType ??= text;
        return;
      case PLACE.responseId:
        this.responseId = text ?? this.responseId;
        return;
      case PLACE.responseStatus:
        this.#responseStatus = text;
        return;
      case PLACE.id:
        this.#id = text;
        return;
    }
  }

  #endChoice(): void {
    const before = this.#choices[this.#choiceIndex];
    if (before === undefined) this.#unfinished += 1;
    if (this.#choiceFinished && before !== true) this.#unfinished -= 1;
    this.#choices[this.#choiceIndex] = before === true || this.#choiceFinished;
    this.#choiceIndex = 0;
    this.#choiceFinished = false;
  }
}

const STREAM_ENDS: ReadonlySet<string> = new Set([
  "message_stop",
  "response.completed",
  "response.incomplete",
  "response.failed",
]);

/** More choices than any engine gives; an index beyond is no index. */
const CHOICES_MAX = 1024;

/** The types of events that bring text, reasoning or a piece of a tool call: of Messages and of Responses. */
function saysContent(type: string): boolean {
  return type === "content_block_delta" || (type.startsWith("response.") && type.endsWith(".delta"));
}
