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
      attemptEnded: (attempt, engine, report) => {
        this.#items.push(["attemptEnded", attempt, engine, report]);
        // An engine that refuses is to be quiet within a second, on every thread.
        if (report.outcome === "fault" || report.outcome === "saturated") this.flush();
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
