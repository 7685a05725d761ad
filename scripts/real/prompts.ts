import { type Random, seededRandom } from "../../packages/core/src/index.ts";
import { ENDLESS_PROMPT, MODEL } from "../../test/src/real/client.ts";
import type { StreamClient } from "./stream.ts";

/**
 * Chat requests of so many prompt and output tokens. Prompts are words drawn at random, a token each, so that no two begin alike
 * and nothing of one is in an engine's cache; the model goes on until `max_tokens`.
 */
export class Prompts {
  readonly #words: readonly string[];
  readonly #frameTokens: number;
  readonly #random: Random;

  private constructor(words: readonly string[], frameTokens: number, seed: number) {
    this.#words = words;
    this.#frameTokens = frameTokens;
    this.#random = seededRandom(seed);
  }

  /**
   * @param text what the model says: its words are tokens
   * @throws Error when a word is no token after all
   */
  static async of(client: StreamClient, text: string, seed: number): Promise<Prompts> {
    // The first begins without a space; those with other letters are several tokens.
    const words = text
      .split(" ")
      .slice(1)
      .filter((word) => /^[a-z]+$/i.test(word)); // prettier-ignore
    const draft = new Prompts(words, 0, seed);
    const counts: number[] = [];
    for (const length of [0, 64]) counts.push((await client.ask(draft.body(length, 1))).promptTokens);
    if (counts[1]! - counts[0]! !== 64) throw new Error(`64 words are ${counts[1]! - counts[0]!} tokens`);
    return new Prompts(words, counts[0]!, seed);
  }

  /** Tokens of a prompt without words: no prompt is shorter. */
  get leastTokens(): number {
    return this.#frameTokens;
  }

  body(promptTokens: number, outputTokens: number): string {
    const count = Math.max(0, promptTokens - this.#frameTokens);
    const draw = () => ` ${this.#words[Math.floor(this.#random() * this.#words.length)]}`;
    const content = `${Array.from({ length: count }, draw).join("")} ${ENDLESS_PROMPT}`;
    return JSON.stringify({
      model: MODEL,
      messages: [{ role: "user", content }],
      max_tokens: outputTokens,
      stream: true,
      stream_options: { include_usage: true },
    });
  }
}
