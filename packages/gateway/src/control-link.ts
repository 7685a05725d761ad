import type { Clock, FeedEvent, Random } from "@guidevane/core";
import { Agent, request } from "undici";
import { readEventText } from "./event-text.ts";
import { feedParts } from "./feed-parts.ts";
import { partsInTurns } from "./loop-turns.ts";
import { gather, type SnapshotText } from "./snapshot-text.ts";

/** A long poll is answered after this at the latest. */
const WAIT_S = 30;
/** Beyond the wait that was asked for. */
const ANSWER_MS = 10_000;
const RETRY_MIN_MS = 250;
const RETRY_MAX_MS = 5000;
/** A report that is not taken by then is dropped: the next one is due. */
const REPORT_MS = 2000;
/** The feed is silent for longer only when its connection is dead. */
const FEED_SILENCE_MS = 60_000;

export interface ControlLinkOptions {
  /** Base URLs of the control planes; the first that answers is listened to, all are reported to. */
  readonly urls: readonly string[];
  readonly cluster: string;
  readonly token: string | null;
  readonly clock: Clock;
  readonly random: Random;
  /** Tag of the snapshot in use; null = none of the control plane's. */
  readonly tag: () => string | null;
  readonly onSnapshot: (text: SnapshotText) => Promise<unknown>;
  readonly onFeed: (event: FeedEvent) => void;
  /** Any sign of life. */
  readonly onWord: () => void;
  /** Told once per change: null = it answers again, else why it doesn't. */
  readonly onTrouble: (what: "snapshot" | "feed" | "demand", url: string, why: string | null) => void;
}

/** The gateway's side of the control plane: pulls snapshots, listens to the feed, reports demand. Never waited for. */
export class ControlLink {
  readonly #options: ControlLinkOptions;
  readonly #agent = new Agent({ connectTimeout: 2000 });
  readonly #abort = new AbortController();
  readonly #troubled = new Set<string>();
  #loops: Promise<void>[] = [];
  #wakePull: (() => void) | null = null;

  constructor(options: ControlLinkOptions) {
    this.#options = options;
  }

  start(): void {
    if (this.#options.urls.length === 0) return;
    this.#loops = [this.#loop("snapshot", (url) => this.#pull(url)), this.#loop("feed", (url) => this.#listen(url))];
  }

  /** Sends a report, JSON, to every control plane; those that don't take it are told of once. */
  async report(body: string): Promise<void> {
    await Promise.all(this.#options.urls.map((url) => this.#post(url, body)));
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    this.#wakePull?.();
    await Promise.all(this.#loops);
    await this.#agent.destroy();
  }

  /** Goes on with one URL while it answers; after a failure with the next, later and later. */
  async #loop(what: "snapshot" | "feed", once: (url: string) => Promise<void>): Promise<void> {
    const { urls, random, onTrouble } = this.#options;
    let at = 0;
    let failures = 0;
    while (!this.#abort.signal.aborted) {
      const url = urls[at % urls.length]!;
      try {
        await once(url);
        failures = 0;
        if (this.#troubled.delete(`${what} ${url}`)) onTrouble(what, url, null);
      } catch (error) {
        if (this.#abort.signal.aborted) return;
        this.#trouble(what, url, error);
        at += 1;
        failures += 1;
        const longestMs = Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** Math.min(failures, 10));
        await this.#pause(what, longestMs * (0.5 + 0.5 * random()));
      }
    }
  }

  async #pull(url: string): Promise<void> {
    const { cluster, tag, onSnapshot, onWord } = this.#options;
    const present = tag();
    const at = `${url}/v1/snapshot?cluster=${encodeURIComponent(cluster)}&wait=${WAIT_S}`;
    const answer = await this.#get(at, {
      ...(present === null ? {} : { "if-none-match": `"${present}"` }),
    });
    const bytes = await gather(answer.body);
    if (answer.statusCode === 304) {
      onWord();
      return;
    }
    if (answer.statusCode !== 200) throw new Error(`HTTP ${answer.statusCode} ${Buffer.from(bytes.slice(0, 200))}`);
    onWord();
    const checksum = answer.headers["x-guidevane-checksum"];
    await onSnapshot({
      bytes,
      gzipped: answer.headers["content-encoding"] === "gzip",
      checksum: typeof checksum === "string" ? checksum : null,
    });
    // A snapshot that was refused is offered again at once; asking in a circle would help nobody.
    if (tag() === present) throw new Error("its snapshot was refused");
  }

  async #listen(url: string): Promise<void> {
    const { cluster, clock, onWord, onTrouble } = this.#options;
    const silence = new AbortController();
    const answer = await this.#get(
      `${url}/v1/feed?cluster=${encodeURIComponent(cluster)}`,
      { accept: "text/event-stream" },
      silence.signal,
    );
    if (answer.statusCode !== 200) {
      await answer.body.dump();
      throw new Error(`HTTP ${answer.statusCode}`);
    }
    if (this.#troubled.delete(`feed ${url}`)) onTrouble("feed", url, null);
    const events: { readonly name: string; readonly data: string }[] = [];
    const reader = readEventText((name, data) => events.push({ name, data }));
    let stopTimer = clock.after(FEED_SILENCE_MS, () => silence.abort());
    try {
      for await (const chunk of answer.body) {
        stopTimer();
        stopTimer = clock.after(FEED_SILENCE_MS, () => silence.abort());
        onWord();
        reader.push(chunk as Buffer);
        for (const { name, data } of events.splice(0)) await partsInTurns(this.#tell(name, data));
      }
    } finally {
      stopTimer();
    }
    throw new Error("the feed ended");
  }

  /** One event of the feed, a part at a time. */
  *#tell(name: string, data: string): Generator<void, void> {
    const { tag, onFeed } = this.#options;
    let isFirst = true;
    for (const event of feedParts(name, data)) {
      if (!isFirst) yield;
      isFirst = false;
      if (event.event === "snapshot" && event.data.tag !== tag()) this.#wakePull?.();
      onFeed(event);
    }
  }

  async #post(url: string, body: string): Promise<void> {
    const { onTrouble } = this.#options;
    try {
      const answer = await request(`${url}/v1/demand`, {
        method: "POST",
        dispatcher: this.#agent,
        signal: AbortSignal.any([this.#abort.signal, AbortSignal.timeout(REPORT_MS)]),
        headers: { ...this.#headers(), "content-type": "application/json" },
        body,
      });
      await answer.body.dump();
      if (answer.statusCode >= 300) throw new Error(`HTTP ${answer.statusCode}`);
      if (this.#troubled.delete(`demand ${url}`)) onTrouble("demand", url, null);
    } catch (error) {
      if (!this.#abort.signal.aborted) this.#trouble("demand", url, error);
    }
  }

  #get(url: string, headers: Record<string, string>, signal?: AbortSignal): ReturnType<typeof request> {
    return request(url, {
      dispatcher: this.#agent,
      signal: signal === undefined ? this.#abort.signal : AbortSignal.any([this.#abort.signal, signal]),
      headers: { ...this.#headers(), "accept-encoding": "gzip", ...headers },
      headersTimeout: WAIT_S * 1000 + ANSWER_MS,
      bodyTimeout: FEED_SILENCE_MS + ANSWER_MS,
    });
  }

  #headers(): Record<string, string> {
    const { token } = this.#options;
    return token === null ? {} : { authorization: `Bearer ${token}` };
  }

  #trouble(what: "snapshot" | "feed" | "demand", url: string, error: unknown): void {
    const key = `${what} ${url}`;
    if (this.#troubled.has(key)) return;
    this.#troubled.add(key);
    this.#options.onTrouble(what, url, error instanceof Error ? error.message : String(error));
  }

  #pause(what: "snapshot" | "feed", ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        stop();
        this.#abort.signal.removeEventListener("abort", done);
        resolve();
      };
      const stop = this.#options.clock.after(ms, done);
      this.#abort.signal.addEventListener("abort", done);
      if (what === "snapshot") this.#wakePull = done;
    });
  }
}
