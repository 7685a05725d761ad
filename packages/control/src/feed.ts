import type { ServerResponse } from "node:http";
import { type Clock, type FeedEvent, writeFeedEvent } from "@guidevane/core";

/** A comment this often keeps proxies from closing a quiet feed and shows each side that the other lives. */
const KEEP_ALIVE_MS = 15_000;

/** A reader further behind than this is cut off; it comes back and gets the present state. */
const MAX_BEHIND_BYTES = 4_000_000;

/** Server-sent events to every gateway that listens. */
export class Feed {
  readonly #clock: Clock;
  readonly #readers = new Map<ServerResponse, string>();
  #cancelKeepAlive = () => {};

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#keepAlive();
  }

  /** @param first the present state, so that a reader needs nothing from before */
  open(cluster: string, response: ServerResponse, first: readonly FeedEvent[]): void {
    response.writeHead(200, {
      "content-type": "text/event-stream",
      "cache-control": "no-store",
      "x-accel-buffering": "no",
    });
    response.on("close", () => this.#readers.delete(response));
    this.#readers.set(response, cluster);
    response.write(first.map(writeFeedEvent).join("") || ":\n\n");
  }

  /** To the readers of one cluster, or of all. */
  send(event: FeedEvent, cluster?: string): void {
    const text = writeFeedEvent(event);
    for (const [response, of] of this.#readers)
      if (cluster === undefined || of === cluster) this.#write(response, text);
  }

  close(): void {
    this.#cancelKeepAlive();
    for (const response of this.#readers.keys()) response.end();
    this.#readers.clear();
  }

  #keepAlive(): void {
    this.#cancelKeepAlive = this.#clock.after(KEEP_ALIVE_MS, () => {
      for (const response of this.#readers.keys()) this.#write(response, ":\n\n");
      this.#keepAlive();
    });
  }

  #write(response: ServerResponse, text: string): void {
    // Between a broken connection and its `close` event a write would be an error that nobody awaits.
    if (response.destroyed || response.writableEnded) return;
    if (response.writableLength > MAX_BEHIND_BYTES) response.destroy();
    else response.write(text);
  }
}
