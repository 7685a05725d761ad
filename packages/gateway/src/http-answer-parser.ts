import { BARE_LINE_END, HEADER, HEX, SIZE_LINE, shown, startsLikeHttp } from "./http-answer-grammar.ts";
import { type AnswerHead, readAnswerHead } from "./http-answer-head.ts";

/** Told of an answer as it comes. */
export interface AnswerEvents {
  /** Of the final head; informational ones are dropped. `headers`: names and values in turn, as sent. */
  onHead(status: number, statusText: string, headers: readonly string[]): void;
  /** A piece of the body, without framing: a view of what was pushed. */
  onData(chunk: Buffer): void;
  /** @param reusable the connection may carry another request */
  onEnd(reusable: boolean): void;
  onMalformed(message: string): void;
}

/** Bytes of a head, and of trailers. Engines add little; a larger head is not an inference server's. */
const HEAD_MAX_BYTES = 65_536;
/** More informational answers than this before the real one are not an answer. */
const INFORMATIONAL_MAX = 32;
/** A chunk's size with its extensions. */
const SIZE_LINE_MAX_BYTES = 1024;
/** Digits of a chunk's size that are read without a look at the whole line. */
const PLAIN_DIGITS_MAX = 7;

const STATE = {
  head: 0,
  /** `#left` bytes of a body whose length was said. */
  length: 1,
  sizeLine: 2,
  /** `#left` bytes of a chunk. */
  chunk: 3,
  /** The line end after a chunk's bytes; `#left` of it to come. */
  chunkEnd: 4,
  trailers: 5,
  untilClose: 6,
  over: 7,
} as const;

/**
 * Parses one answer of a connection, HTTP/1.1 as RFC 9112 has it and nothing beside it: engines are a known, narrow set
 * of servers, so anything odd is `malformed` and costs them the connection. No line without CRLF, no folded header, no space
 * before a colon, one length or `chunked` and never both, no upgrade.
 */
export class HttpAnswerParser {
  readonly #events: AnswerEvents;
  #state: (typeof STATE)[keyof typeof STATE] = STATE.head;
  /** Bytes of a line or a head that has not ended. */
  #rest: Buffer = EMPTY;
  #left = 0;
  /** Bytes in hand after the line that is being read. */
  #trailing = 0;
  #reusable = true;
  #informational = 0;
  #began = false;

  constructor(events: AnswerEvents) {
    this.#events = events;
  }

  /** Any byte came. */
  get began(): boolean {
    return this.#began;
  }

  /** The answer is over, in good order or not. */
  get over(): boolean {
    return this.#state === STATE.over;
  }

  /** What came; nothing keeps it once this returns. What follows the answer's end is not read. */
  push(bytes: Buffer): void {
    this.#began = true;
    let at = 0;
    while (at < bytes.length && this.#state !== STATE.over) {
      switch (this.#state) {
        case STATE.length:
        case STATE.chunk:
          at = this.#body(bytes, at);
          break;
        case STATE.chunkEnd:
          at = this.#chunkEnd(bytes, at);
          break;
        case STATE.untilClose:
          this.#events.onData(at === 0 ? bytes : bytes.subarray(at));
          return;
        case STATE.sizeLine:
          at = this.#size(bytes, at);
          break;
        case STATE.trailers:
          at = this.#line(bytes, at, HEAD_MAX_BYTES, (line) => this.#trailer(line));
          break;
        default:
          at = this.#head(bytes, at);
      }
    }
  }

  /** The connection's other side has ended it. @returns whether the answer is whole by that */
  close(): boolean {
    if (this.#state !== STATE.untilClose) return false;
    this.#end(false);
    return true;
  }

  #body(bytes: Buffer, from: number): number {
    const to = Math.min(bytes.length, from + this.#left);
    this.#left -= to - from;
    const ends = this.#left === 0;
    const chunk = from === 0 && to === bytes.length ? bytes : bytes.subarray(from, to);
    if (this.#state === STATE.chunk) {
      if (ends) {
        this.#state = STATE.chunkEnd;
        this.#left = 2;
      }
      this.#events.onData(chunk);
    } else {
      this.#events.onData(chunk);
      if (ends) this.#end(to === bytes.length);
    }
    return to;
  }

  #chunkEnd(bytes: Buffer, from: number): number {
    if (bytes[from] !== (this.#left === 2 ? CR : LF)) return this.#malformed("a chunk is longer than its size says");
    this.#left -= 1;
    if (this.#left === 0) this.#state = STATE.sizeLine;
    return from + 1;
  }

  /** Gives `take` the next line without its end, once it is whole. */
  #line(bytes: Buffer, from: number, maxBytes: number, take: (line: string) => void): number {
    const feed = bytes.indexOf(LF, from);
    const end = feed === -1 ? bytes.length : feed + 1;
    if (this.#rest.length + end - from > maxBytes) return this.#malformed(`a line of more than ${maxBytes} bytes`);
    const part = bytes.subarray(from, end);
    if (feed === -1) {
      this.#rest = Buffer.concat([this.#rest, part]);
      return end;
    }
    const line = this.#rest.length === 0 ? part : Buffer.concat([this.#rest, part]);
    this.#rest = EMPTY;
    if (line[line.length - 2] !== CR) return this.#malformed("a line that does not end in CR LF");
    this.#trailing = bytes.length - end;
    take(line.toString("latin1", 0, line.length - 2));
    return end;
  }

  /** A size and nothing else, whole in these bytes, is read in its place. */
  #size(bytes: Buffer, from: number): number {
    let size = 0;
    let at = from;
    for (; at < bytes.length && at - from < PLAIN_DIGITS_MAX; at++) {
      const digit = HEX[bytes[at]!]!;
      if (digit < 0) break;
      size = size * 16 + digit;
    }
    const plain = this.#rest.length === 0 && size > 0 && bytes[at] === CR && bytes[at + 1] === LF;
    if (!plain) return this.#line(bytes, from, SIZE_LINE_MAX_BYTES, (line) => this.#sizeLine(line));
    this.#left = size;
    this.#state = STATE.chunk;
    return at + 2;
  }

  #sizeLine(line: string): void {
    const size = SIZE_LINE.exec(line)?.[1];
    if (size === undefined) {
      this.#malformed(`chunk size ${shown(line)}`);
      return;
    }
    this.#left = Number.parseInt(size, 16);
    this.#state = this.#left === 0 ? STATE.trailers : STATE.chunk;
  }

  /** Trailers are read and dropped, as a gateway may (RFC 9110 §6.5.1). */
  #trailer(line: string): void {
    if (line === "") this.#end(this.#trailing === 0);
    else if (!HEADER.test(line)) this.#malformed(`trailer ${shown(line)}`);
  }

  #head(bytes: Buffer, from: number): number {
    const rest = this.#rest.length;
    const all = rest === 0 ? bytes : Buffer.concat([this.#rest, from === 0 ? bytes : bytes.subarray(from)]);
    const start = rest === 0 ? from : 0;
    // The blank line may have begun in what came before.
    const end = all.indexOf(HEAD_END, Math.max(start, rest - 3), "latin1");
    if ((end === -1 ? all.length : end) - start > HEAD_MAX_BYTES)
      return this.#malformed(`a head of more than ${HEAD_MAX_BYTES} bytes`);
    if (end === -1) {
      // Else an engine that will never end its head would be waited for.
      if (!startsLikeHttp(all, start)) return this.#malformed("the answer does not begin with HTTP/1.");
      if (BARE_LINE_END.test(all.toString("latin1", start)))
        return this.#malformed("a line that does not end in CR LF");
      this.#rest = Buffer.from(all.subarray(start));
      return bytes.length;
    }
    this.#rest = EMPTY;
    const next = end + HEAD_END.length - (rest === 0 ? 0 : rest - from);
    this.#readHead(all.toString("latin1", start, end), next === bytes.length);
    return next;
  }

  /** @param last no byte of this connection is in hand after the head */
  #readHead(text: string, last: boolean): void {
    const head = readAnswerHead(text);
    if (typeof head === "string") this.#malformed(head);
    else if (head.status < 200) this.#informed(head.status);
    else this.#begin(head, last);
  }

  #informed(status: number): void {
    this.#informational += 1;
    if (status === 101) this.#malformed("an upgrade that nobody asked for");
    else if (this.#informational > INFORMATIONAL_MAX)
      this.#malformed(`more than ${INFORMATIONAL_MAX} informational answers`);
  }

  #begin({ status, statusText, headers, length, chunked, keepsOpen }: AnswerHead, last: boolean): void {
    const bodiless = status === 204 || status === 304;
    this.#left = length ?? 0;
    if (bodiless || length === 0) this.#state = STATE.over;
    else if (chunked) this.#state = STATE.sizeLine;
    else this.#state = length === null ? STATE.untilClose : STATE.length;
    this.#reusable = keepsOpen && this.#state !== STATE.untilClose;
    const over = this.#state === STATE.over;
    this.#events.onHead(status, statusText, headers);
    if (over) this.#end(last);
  }

  /** @param last nothing came after the answer: what did would be taken for the next one */
  #end(last: boolean): void {
    this.#state = STATE.over;
    this.#events.onEnd(this.#reusable && last);
  }

  #malformed(message: string): number {
    this.#state = STATE.over;
    this.#rest = EMPTY;
    this.#events.onMalformed(message);
    return Number.POSITIVE_INFINITY;
  }
}

const EMPTY: Buffer = Buffer.alloc(0);
const CR = 0x0d;
const LF = 0x0a;
const HEAD_END = "\r\n\r\n";
