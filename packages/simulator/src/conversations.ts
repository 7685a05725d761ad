import type { Random } from "@guidevane/core";
import { BYTES_PER_TOKEN } from "./answer-text.ts";

/** One request of a conversation, as a client of the OpenAI API sends it. */
export interface Turn {
  /** For `x-session-id`. */
  readonly session: string;
  readonly messages: readonly { readonly role: "user" | "assistant"; readonly content: string }[];
}

/**
 * A crowd of conversations of which one takes a turn at a time, at random; after `TURNS` turns a new one takes its place.
 * Every turn's prompt has the same length and nothing that a cache would have from the turn before, so that a class's
 * requests stay of the size that the plan assumes.
 */
export class Conversations {
  readonly #name: string;
  readonly #random: Random;
  readonly #promptBytes: number;
  readonly #live: { id: number; turn: number }[];
  #nextId: number;

  constructor(name: string, promptTokens: number, random: Random, count: number = CONVERSATIONS) {
    this.#name = name;
    this.#random = random;
    this.#promptBytes = Math.max(4, Math.round(promptTokens * BYTES_PER_TOKEN));
    // Begun at different turns, so that they don't all end together.
    this.#live = Array.from({ length: count }, (_, id) => ({ id, turn: id % TURNS }));
    this.#nextId = count;
  }

  next(): Turn {
    const at = Math.floor(this.#random() * this.#live.length);
    const { id, turn } = this.#live[at]!;
    this.#live[at] = turn + 1 < TURNS ? { id, turn: turn + 1 } : { id: this.#nextId++, turn: 0 };
    const session = `${this.#name}-${id}`;
    const count = 2 * turn + 1;
    // The emulator joins the turns by one byte each.
    const bytes = Math.max(1, Math.floor((this.#promptBytes - count + 1) / count));
    const messages = Array.from({ length: count }, (_, index) => ({
      role: index % 2 === 0 ? ("user" as const) : ("assistant" as const),
      content: fill(`${turn} ${session} ${index} `, bytes),
    }));
    return { session, messages };
  }
}

/**
 * Enough that chance in who holds which slot stays small: a share of 0.25 spread over 2,000 conversations is good to 4 %
 * of itself, over 200 only to 12 %.
 */
const CONVERSATIONS = 2000;
const TURNS = 4;

function fill(start: string, bytes: number): string {
  return start.length >= bytes ? start.slice(0, bytes) : start.padEnd(bytes, "lorem ipsum ");
}
