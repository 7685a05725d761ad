import type { ThreadNews } from "./request-thread.ts";
import type { NewsItem } from "./thread-messages.ts";

/** Gathers what a thread has to tell, so that a message carries many ends of attempts; what is urgent goes at once. */
export class NewsBatch {
  readonly news: ThreadNews;
  readonly #send: (items: readonly NewsItem[]) => void;
  #items: NewsItem[] = [];

  constructor(send: (items: readonly NewsItem[]) => void) {
    this.#send = send;
    this.news = {
      attemptBegan: (attempt, begun) => {
        this.#items.push(["attemptBegan", attempt, begun]);
      },
      firstToken: (attempt, ttftMs) => {
        this.#items.push(["firstToken", attempt, ttftMs]);
      },
      attemptEnded: (attempt, engine, { outcome, status, connectMs, failure, retryAfterMs, answer }) => {
        // No more than is asked for: a message is copied field by field.
        const told = answer === null ? null : { tbotMs: answer.tbotMs };
        const verdict = { outcome, status, connectMs, failure, retryAfterMs, answer: told };
        this.#items.push(["attemptEnded", attempt, engine, verdict]);
        // An engine that refuses is to be quiet within a second, on every thread.
        if (outcome === "fault" || outcome === "saturated") this.flush();
      },
      heard: (engine) => {
        this.#items.push(["heard", engine]);
      },
      idle: (compiled) => {
        this.#items.push(["idle", compiled]);
      },
      failed: (requestId, error, stack) => {
        this.#items.push(["failed", requestId, error, stack]);
        this.flush();
      },
    };
  }

  flush(): void {
    if (this.#items.length === 0) return;
    const items = this.#items;
    this.#items = [];
    this.#send(items);
  }
}
