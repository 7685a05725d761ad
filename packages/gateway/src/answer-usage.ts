/** Ids of the members of a usage object, whatever its dialect. */
export const USAGE = {
  /** The object itself, when it is whole. */
  end: 20,
  prompt: 21,
  completion: 22,
  total: 23,
  /** Anthropic's `input_tokens` leaves the cached part out where it names one; OpenAI's responses name it all. */
  input: 24,
  output: 25,
  cacheRead: 26,
  cacheWrite: 27,
  cached: 28,
} as const;

/** Where usage stands: OpenAI's APIs, Messages (first and last event), Responses, Groq, Moonshot. */
const USAGE_AT = ["usage", "message.usage", "response.usage", "x_groq.usage", "choices[].usage"];

const USAGE_MEMBERS: readonly (readonly [string, number])[] = [
  ["prompt_tokens", USAGE.prompt],
  ["completion_tokens", USAGE.completion],
  ["total_tokens", USAGE.total],
  ["input_tokens", USAGE.input],
  ["output_tokens", USAGE.output],
  ["cache_read_input_tokens", USAGE.cacheRead],
  ["cache_creation_input_tokens", USAGE.cacheWrite],
  ["prompt_tokens_details.cached_tokens", USAGE.cached],
  ["input_tokens_details.cached_tokens", USAGE.cached],
  ["cached_tokens", USAGE.cached],
  ["prompt_cache_hit_tokens", USAGE.cached],
];

export const USAGE_PATHS: readonly (readonly [string, number])[] = USAGE_AT.flatMap((at) => [
  [at, USAGE.end] as const,
  ...USAGE_MEMBERS.map(([name, id]) => [`${at}.${name}`, id] as const),
]);

/** Tokens of an answer, so far as it told them; null = not told. */
export interface Tokens {
  /** All of the prompt, the cached part with it. */
  readonly prompt: number | null;
  readonly completion: number | null;
  /** The part of the prompt that came from a cache. */
  readonly cached: number | null;
}

/**
 * The usage that an answer tells, put together from the usage objects in it: what the last one says stands, and what it
 * does not mention stays as the one before said (Messages tell the prompt first and the completion last). Nothing is added
 * up between them, so cumulative usage on every event counts once.
 */
export class AnswerUsage {
  /** Of the object at hand, by id. */
  #given: (number | undefined)[] = [];
  #prompt: number | null = null;
  #completion: number | null = null;
  #cached: number | null = null;
  #told = false;

  /** A member of the usage object at hand. */
  take(id: number, value: number): void {
    if (value >= 0) this.#given[id] = value;
  }

  /** The usage object at hand is whole. */
  end(): void {
    const given = (id: number): number | null => this.#given[id] ?? null;
    this.#told = true;
    const read = given(USAGE.cacheRead);
    const write = given(USAGE.cacheWrite);
    const input = given(USAGE.input);
    const total = given(USAGE.total);
    const completion = given(USAGE.completion) ?? given(USAGE.output);
    const anthropic = input === null ? null : input + (read ?? 0) + (write ?? 0);
    // Rerankers tell nothing but a total, which is all prompt.
    const rest = total === null || completion !== null ? null : total;
    this.#prompt = given(USAGE.prompt) ?? anthropic ?? rest ?? this.#prompt;
    this.#completion = completion ?? this.#completion;
    this.#cached = given(USAGE.cached) ?? read ?? this.#cached;
    this.#given = [];
  }

  get told(): boolean {
    return this.#told;
  }

  get tokens(): Tokens {
    return { prompt: this.#prompt, completion: this.#completion, cached: this.#cached };
  }
}
