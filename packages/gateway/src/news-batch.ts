import type { AttemptVerdict } from "./attempt-result.ts";
import type { EngineFailure } from "./engine-client.ts";
import type { ThreadNews } from "./request-thread.ts";

/**
 * What a thread has to tell, on its way to another one. A message is copied value by value: an attempt as objects in an
 * array costs both threads together 4.5 µs, a seventh of a request; as numbers, each word once, a tenth of that.
 */
export interface NewsMessage {
  /** Of each call of `ThreadNews` its kind and what it was given, in order; a word by its index, NaN for what is not there. */
  readonly numbers: Float64Array;
  readonly words: readonly string[];
  /** Of the attempts that failed so; few. */
  readonly failures: readonly EngineFailure[];
}

const BEGAN = 0;
const FIRST_TOKEN = 1;
const ENDED = 2;
const HEARD = 3;
const IDLE = 4;
const FAILED = 5;
const NONE = Number.NaN;

/** Gathers what a thread has to tell, so that a message carries many ends of attempts; what is urgent goes at once. */
export class NewsBatch {
  readonly news: ThreadNews;
  readonly #send: (message: NewsMessage) => void;
  #numbers: number[] = [];
  #words = new Map<string, number>();
  #failures: EngineFailure[] = [];

  constructor(send: (message: NewsMessage) => void) {
    this.#send = send;
    this.news = {
      attemptBegan: (attempt, { engine, requestClass, promptTokens }) => {
        this.#numbers.push(BEGAN, attempt, this.#word(engine), this.#word(requestClass), promptTokens ?? NONE);
      },
      firstToken: (attempt, ttftMs) => {
        this.#numbers.push(FIRST_TOKEN, attempt, ttftMs);
      },
      attemptEnded: (attempt, engine, verdict) => {
        this.#numbers.push(ENDED, attempt, this.#word(engine));
        this.#verdict(verdict);
        // An engine that refuses is to be quiet within a second, on every thread.
        if (verdict.outcome === "fault" || verdict.outcome === "saturated") this.flush();
      },
      heard: (engine) => {
        this.#numbers.push(HEARD, this.#word(engine));
      },
      idle: (compiled) => {
        this.#numbers.push(IDLE, compiled);
      },
      failed: (requestId, error, stack) => {
        const shown = stack === undefined ? NONE : this.#word(stack);
        this.#numbers.push(FAILED, this.#word(requestId), this.#word(error), shown);
        this.flush();
      },
    };
  }

  flush(): void {
    if (this.#numbers.length === 0) return;
    const numbers = new Float64Array(this.#numbers);
    const message = { numbers, words: [...this.#words.keys()], failures: this.#failures };
    this.#numbers = [];
    this.#words = new Map();
    this.#failures = [];
    this.#send(message);
  }

  #verdict({ outcome, status, connectMs, failure, retryAfterMs, answer }: AttemptVerdict): void {
    const failed = failure === null ? NONE : this.#failures.push(failure) - 1;
    const tbotMs = answer?.tbotMs ?? NONE;
    this.#numbers.push(this.#word(outcome), status ?? NONE, connectMs ?? NONE, failed, retryAfterMs ?? NONE, tbotMs);
  }

  #word(word: string): number {
    let index = this.#words.get(word);
    if (index === undefined) {
      index = this.#words.size;
      this.#words.set(word, index);
    }
    return index;
  }
}

/** Tells what a message says, in order. */
export function tellNews({ numbers, words, failures }: NewsMessage, news: ThreadNews): void {
  let at = 0;
  const number = (): number => numbers[at++]!;
  const word = (): string => words[number()]!;
  const orNull = (value: number): number | null => (Number.isNaN(value) ? null : value);
  const verdict = (): AttemptVerdict => {
    const outcome = word() as AttemptVerdict["outcome"];
    const status = orNull(number());
    const connectMs = orNull(number());
    const failure = failures[number()] ?? null;
    const retryAfterMs = orNull(number());
    const tbotMs = orNull(number());
    return { outcome, status, connectMs, failure, retryAfterMs, answer: tbotMs === null ? null : { tbotMs } };
  };
  while (at < numbers.length) {
    switch (number()) {
      case BEGAN:
        news.attemptBegan(number(), { engine: word(), requestClass: word(), promptTokens: orNull(number()) });
        break;
      case FIRST_TOKEN:
        news.firstToken(number(), number());
        break;
      case ENDED:
        news.attemptEnded(number(), word(), verdict());
        break;
      case HEARD:
        news.heard(word());
        break;
      case IDLE:
        news.idle(number());
        break;
      case FAILED:
        news.failed(word(), word(), words[number()]);
        break;
      default:
        throw new Error(`a thread told something that has no meaning, at ${at - 1} of ${numbers.join(" ")}`);
    }
  }
}
