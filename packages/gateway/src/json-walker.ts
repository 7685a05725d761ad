import {
  CLOSE_LIST,
  CLOSE_OBJECT,
  COLON,
  COMMA,
  isDigit,
  MINUS,
  OPEN_LIST,
  OPEN_OBJECT,
  QUOTE,
  SPACE,
} from "./json-marks.ts";
import { JsonNumber } from "./json-number.ts";
import { JsonPassedOver } from "./json-passed-over.ts";
import type { PathNode } from "./json-paths.ts";
import { JsonText } from "./json-text.ts";

/** What a value is. */
export const VALUE = { null: 0, false: 1, true: 2, number: 3, text: 4, list: 5, object: 6 } as const;

/** Told of each value that stands at a place with an id, when it is whole. */
export type OnValue = (
  id: number,
  kind: number,
  /** Of a number itself (NaN where it has an exponent); of a text its bytes as written; of a list or object 0 = empty, else 1. */
  size: number,
) => void;

/**
 * Walks one JSON document as bytes, cut anywhere, and tells the values at the places that it was given. Everything else is
 * passed over without being decoded or kept. It takes what is JSON and notices what is cut off or is no JSON at all where it
 * looks; inside what it passes over it minds brackets and quotes alone.
 */
export class JsonWalker {
  readonly #root: PathNode;
  readonly #onValue: OnValue;
  #mode: number = MODE.value;
  /** Open lists and objects that are looked into: their places, whether they are lists, whether something is in them. */
  readonly #nodes: (PathNode | null)[] = [null];
  readonly #lists: boolean[] = [false];
  readonly #filled: number[] = [0];
  #depth = 0;
  /** The place of the value at hand; null where nothing looks. */
  #node: PathNode | null;
  readonly #words = new JsonText();
  readonly #number = new JsonNumber();
  readonly #passedOver = new JsonPassedOver();
  #literal = VALUE.null as number;

  constructor(root: PathNode, onValue: OnValue) {
    this.#root = root;
    this.#onValue = onValue;
    this.#node = root;
  }

  /** Ready for another document. */
  reset(): void {
    this.#mode = MODE.value;
    this.#depth = 0;
    this.#node = this.#root;
  }

  /** Whether the document is whole. */
  get done(): boolean {
    return this.#mode === MODE.done;
  }

  /** During `OnValue` of a text: the text; null where it is longer than is kept, or has escapes. */
  get text(): string | null {
    return this.#words.value;
  }

  /** During `OnValue` of a text: where it begins in the bytes at hand; -1 where it began before them. */
  get textStart(): number {
    return this.#words.start;
  }

  push(bytes: Buffer, start: number, end: number): void {
    this.#walk(bytes, start, end);
    this.#words.release();
  }

  #walk(bytes: Buffer, start: number, end: number): void {
    let at = start;
    while (at < end) {
      switch (this.#mode) {
        case MODE.skip:
          at = this.#passOver(bytes, at, end);
          break;
        case MODE.text:
        case MODE.name:
        case MODE.skipText:
          at = this.#text(bytes, at, end);
          break;
        case MODE.number:
          at = this.#digits(bytes, at, end);
          break;
        case MODE.literal:
          at = this.#letter(bytes, at, end);
          break;
        case MODE.bad:
          return;
        default:
          this.#structure(bytes[at]!);
          at += 1;
      }
    }
  }

  #structure(byte: number): void {
    // All that JSON has below and at the space is space.
    if (byte <= SPACE) return;
    switch (this.#mode) {
      case MODE.value:
        this.#value(byte);
        return;
      case MODE.valueOrEnd:
        if (byte === CLOSE_LIST) this.#close(VALUE.list);
        else this.#value(byte);
        return;
      case MODE.nameOrEnd:
        if (byte === CLOSE_OBJECT) this.#close(VALUE.object);
        else this.#beginName(byte);
        return;
      case MODE.nameNext:
        this.#beginName(byte);
        return;
      case MODE.colon:
        this.#mode = byte === COLON ? MODE.value : MODE.bad;
        return;
      case MODE.after: {
        const isList = this.#lists[this.#depth]!;
        if (byte === COMMA) {
          if (isList) this.#beginElement();
          else this.#mode = MODE.nameNext;
        } else if (byte === (isList ? CLOSE_LIST : CLOSE_OBJECT)) this.#close(isList ? VALUE.list : VALUE.object);
        else this.#mode = MODE.bad;
        return;
      }
      default:
        this.#mode = MODE.bad;
    }
  }

  #value(byte: number): void {
    if (this.#depth > 0) this.#filled[this.#depth] = 1;
    const node = this.#node;
    if (byte === QUOTE) {
      this.#mode = MODE.text;
      this.#words.begin();
    } else if (byte === OPEN_OBJECT || byte === OPEN_LIST) {
      const isList = byte === OPEN_LIST;
      const looked = node !== null && (isList ? node.items !== null : node.members.length > 0 || node.other !== null);
      if (looked) {
        this.#depth += 1;
        this.#nodes[this.#depth] = node;
        this.#lists[this.#depth] = isList;
        this.#filled[this.#depth] = 0;
        if (isList) this.#node = node.items;
        this.#mode = isList ? MODE.valueOrEnd : MODE.nameOrEnd;
      } else {
        this.#passedOver.begin(isList ? VALUE.list : VALUE.object);
        this.#mode = MODE.skip;
      }
    } else if (byte === MINUS || isDigit(byte)) {
      this.#number.begin(byte);
      this.#mode = MODE.number;
    } else if (byte === 0x6e || byte === 0x74 || byte === 0x66) {
      this.#literal = byte === 0x6e ? VALUE.null : byte === 0x74 ? VALUE.true : VALUE.false;
      this.#mode = MODE.literal;
    } else {
      this.#mode = MODE.bad;
    }
  }

  #beginName(byte: number): void {
    if (byte !== QUOTE) {
      this.#mode = MODE.bad;
      return;
    }
    this.#mode = MODE.name;
    this.#words.begin();
  }

  #beginElement(): void {
    this.#node = this.#nodes[this.#depth]!.items;
    this.#mode = MODE.value;
  }

  /** Inside quotes: goes to the closing one or to the end of the bytes. */
  #text(bytes: Buffer, start: number, end: number): number {
    const mode = this.#mode;
    const isKept = mode === MODE.name || (mode === MODE.text && this.#node !== null);
    const quote = this.#words.read(bytes, start, end, isKept);
    if (quote === end) return end;
    if (mode === MODE.skipText) this.#mode = MODE.skip;
    else if (mode === MODE.name) {
      this.#node = this.#member();
      this.#mode = MODE.colon;
    } else {
      this.#tell(VALUE.text, this.#words.length);
      this.#afterValue();
    }
    return quote + 1;
  }

  /** The place of the member whose name was read. */
  #member(): PathNode | null {
    const node = this.#nodes[this.#depth]!;
    const named = node.members[this.#words.length];
    if (named !== undefined) {
      for (const { name, node: member } of named) if (this.#words.equals(name)) return member;
    }
    return node.other;
  }

  #digits(bytes: Buffer, start: number, end: number): number {
    const after = this.#number.read(bytes, start, end);
    if (after === end) return end;
    this.#tell(VALUE.number, this.#number.value);
    this.#afterValue();
    return after;
  }

  /** To the end of `null`, `true` or `false`. */
  #letter(bytes: Buffer, start: number, end: number): number {
    for (let at = start; at < end; at++) {
      const byte = bytes[at]!;
      if (byte >= 0x61 && byte <= 0x7a) continue;
      this.#tell(this.#literal, 0);
      this.#afterValue();
      return at;
    }
    return end;
  }

  #passOver(bytes: Buffer, start: number, end: number): number {
    const stop = this.#passedOver.read(bytes, start, end);
    if (stop === end) return end;
    if (bytes[stop] === QUOTE) {
      this.#mode = MODE.skipText;
      this.#words.begin();
    } else {
      this.#tell(this.#passedOver.kind, this.#passedOver.filled);
      this.#afterValue();
    }
    return stop + 1;
  }

  #close(kind: number): void {
    const filled = this.#filled[this.#depth]!;
    this.#node = this.#nodes[this.#depth]!;
    this.#depth -= 1;
    this.#tell(kind, filled);
    this.#afterValue();
  }

  #afterValue(): void {
    this.#mode = this.#depth === 0 ? MODE.done : MODE.after;
  }

  #tell(kind: number, size: number): void {
    const node = this.#node;
    if (node !== null && node.id !== 0) this.#onValue(node.id, kind, size);
  }
}

const MODE = {
  /** A value must come. */
  value: 0,
  valueOrEnd: 1,
  nameOrEnd: 2,
  nameNext: 3,
  colon: 4,
  /** After a value: a comma or the end of what it stands in. */
  after: 5,
  name: 6,
  text: 7,
  number: 8,
  literal: 9,
  skip: 10,
  skipText: 11,
  done: 12,
  bad: 13,
} as const;
