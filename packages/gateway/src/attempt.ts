import type { Outcome } from "@guidevane/core";
import { type Next, outcomeOfStatus } from "@guidevane/guard";
import { type ApiError, errorEvent } from "./api-error.ts";
import { BROKE_OFF, endOf, retryAfterMsOf } from "./attempt-end.ts";
import type { AttemptOptions, AttemptReport, AttemptResult } from "./attempt-result.ts";
import type { EngineCall, EngineEvents, EngineFailure } from "./engine-client.ts";
import { headerOf, headersToClient } from "./headers.ts";
import { StreamTail } from "./stream-tail.ts";

/** An answer larger than this is passed on rather than kept for another attempt. */
const HELD_MAX_BYTES = 65_536;

/** An answer that says "not now" but does not end within this is given up for the next attempt. */
const HELD_MAX_MS = 1000;

/**
 * How long an answer may still be silent once its engine's port refuses connections. An engine that stops in good order
 * closes its port first and goes on with what it has; one whose core was killed leaves its streams open and says nothing.
 */
const DEAD_SILENCE_MS = 2000;

/**
 * A client that takes nothing more for this long is gone, whatever its connection says: an engine and its place in the
 * batch are not held for it. Slow readers take something within seconds.
 */
const CLIENT_STALL_MS = 60_000;

/** An attempt under way. */
export interface RunningAttempt {
  readonly result: Promise<AttemptResult>;
  /** The engine's port is closed: silence now means that it is dead. */
  engineDied(): void;
}

/** Sends one request to one engine and, if the answer is to be the client's, passes it on as it comes. */
export function attempt(options: AttemptOptions): RunningAttempt {
  const { promise, resolve } = Promise.withResolvers<AttemptResult>();
  const running = new Attempt(options, resolve);
  running.start();
  return { result: promise, engineDied: () => running.engineDied() };
}

/** An answer on its way to becoming a `HeldAnswer`. */
interface Holding {
  readonly status: number;
  readonly statusText: string;
  readonly headers: readonly string[];
  readonly chunks: Buffer[];
  bytes: number;
}

type Phase = "waiting" | "holding" | "passing" | "over";

class Attempt implements EngineEvents {
  readonly #options: AttemptOptions;
  readonly #resolve: (result: AttemptResult) => void;
  readonly #startMs: number;
  #phase: Phase = "waiting";
  #call: EngineCall | null = null;
  #status: number | null = null;
  #connectMs: number | null = null;
  #firstByteMs: number | null = null;
  #bytes = 0;
  #failure: EngineFailure | null = null;

  #stopTimer: () => void = noTimer;
  #stopTotal: () => void = noTimer;
  #stopStall: () => void = noTimer;
  #lastByteMs = 0;
  /** The idle timer has the short time of a dead engine and is not to be set anew. */
  #deadSilence = false;

  #next: Next = { retry: false };
  #held: Holding | null = null;

  #pending: Buffer[] = [];
  #flushing = false;
  #paused = false;
  #tail: StreamTail | null = null;
  #hasLength = false;
  #endsByClose = false;
  #headFlushed = false;
  #endOutcome: Outcome = "success";

  constructor(options: AttemptOptions, resolve: (result: AttemptResult) => void) {
    this.#options = options;
    this.#resolve = resolve;
    this.#startMs = options.clock.nowMs();
  }

  start(): void {
    const { client, request, socket } = this.#options;
    socket.on("close", this.#onClientGone);
    this.#call = client.send(request, this);
  }

  engineDied(): void {
    if (this.#phase === "over") return;
    this.#deadSilence = true;
    this.#armIdle(Math.min(DEAD_SILENCE_MS, this.#options.timers.idleMs));
  }

  onSent(connectMs: number | null): void {
    const { clock, timers, stream } = this.#options;
    this.#connectMs = connectMs;
    if (stream) this.#arm(timers.firstTokenMs, "no first bytes");
    else this.#arm(timers.headMs, "no answer");
    if (timers.totalMs > 0)
      this.#stopTotal = clock.after(timers.totalMs, () => this.#expire(`not over after ${timers.totalMs} ms`));
  }

  onHead(status: number, rawStatusText: string, headers: readonly string[]): void {
    // The parser lets characters into a status text that must not leave again.
    const statusText = rawStatusText.replace(UNPRINTABLE, "");
    const { servesModel, stream, timers } = this.#options;
    this.#status = status;
    const retryAfterMs = retryAfterMsOf(headerOf(headers, "retry-after"));
    this.#next = this.#options.decide({ kind: "answer", status, servesModel, retryAfterMs });
    this.#endOutcome = outcomeOfStatus(status, servesModel);
    if (this.#next.retry !== false) {
      this.#phase = "holding";
      this.#held = { status, statusText, headers, chunks: [], bytes: 0 };
      this.#arm(HELD_MAX_MS, "held answer did not end");
      return;
    }
    if (!stream && !this.#deadSilence) this.#armIdle(timers.idleMs);
    this.#commit(status, statusText, headers);
    this.#scheduleFlush();
  }

  onData(chunk: Buffer): void {
    const { clock, timers, stream } = this.#options;
    if (this.#firstByteMs === null) {
      this.#firstByteMs = clock.nowMs() - this.#startMs;
      if (stream && this.#phase === "passing" && !this.#deadSilence) this.#armIdle(timers.idleMs);
    }
    this.#lastByteMs = clock.nowMs();
    this.#bytes += chunk.length;
    const held = this.#held;
    if (this.#phase === "holding" && held !== null) {
      held.chunks.push(chunk);
      held.bytes += chunk.length;
      if (held.bytes > HELD_MAX_BYTES) this.#passOnHeld(held);
      return;
    }
    this.#tail?.see(chunk);
    this.#pending.push(chunk);
    this.#scheduleFlush();
  }

  onEnd(): void {
    if (this.#phase === "holding" && this.#held !== null) {
      const { status, statusText, headers, chunks } = this.#held;
      const held = { status, statusText, headers, body: Buffer.concat(chunks) };
      this.#settle({ kind: "retry", next: this.#next, held, report: this.#report(this.#endOutcome) });
      return;
    }
    const { response } = this.#options;
    this.#flush();
    const broken = this.#tail !== null && !this.#tail.terminated;
    // Without a length or chunks a closed connection is the only end there is, and a dying engine closes too.
    if (broken && this.#endsByClose) response.destroy();
    else response.end();
    const fault = broken || this.#tail?.failed === true;
    this.#settle({ kind: "over", report: this.#report(fault ? "fault" : this.#endOutcome) });
  }

  onFail(failure: EngineFailure): void {
    this.#failure = failure;
    if (this.#phase === "passing") {
      this.#options.response.destroy();
      this.#settle({ kind: "over", report: this.#report("fault") });
      return;
    }
    if (this.#phase === "holding") {
      this.#settle({ kind: "retry", next: this.#next, held: null, report: this.#report("fault") });
      return;
    }
    const next = this.#options.decide(endOf(failure));
    const report = this.#report("fault");
    if (next.retry !== false) this.#settle({ kind: "retry", next, held: null, report });
    else this.#settle({ kind: "failed", error: BROKE_OFF, report });
  }

  #commit(status: number, statusText: string, headers: readonly string[]): void {
    const { response, answerHeaders, onCommit } = this.#options;
    this.#phase = "passing";
    const isEventStream = /^text\/event-stream\b/i.test(headerOf(headers, "content-type") ?? "");
    // In a compressed stream nothing can be seen, and nothing can be added to it.
    const plain = /^(identity)?$/i.test(headerOf(headers, "content-encoding") ?? "");
    if (isEventStream && plain && status === 200) this.#tail = new StreamTail();
    this.#hasLength = headerOf(headers, "content-length") !== undefined;
    this.#endsByClose = !this.#hasLength && headerOf(headers, "transfer-encoding") === undefined;
    response.sendDate = false;
    response.writeHead(status, statusText, headersToClient(headers, answerHeaders));
    onCommit();
  }

  #passOnHeld(held: Holding): void {
    this.#held = null;
    this.#armIdle(this.#options.timers.idleMs);
    this.#commit(held.status, held.statusText, held.headers);
    this.#pending.push(...held.chunks);
    this.#scheduleFlush();
  }

  /** All that arrives in one turn of the event loop is written once. */
  #scheduleFlush(): void {
    if (this.#flushing) return;
    this.#flushing = true;
    process.nextTick(() => {
      this.#flushing = false;
      if (this.#phase === "passing") this.#flush();
    });
  }

  #flush(): void {
    const { response } = this.#options;
    const pending = this.#pending;
    if (pending.length === 0) {
      if (!response.writableEnded && !this.#headFlushed) response.flushHeaders();
      this.#headFlushed = true;
      return;
    }
    this.#headFlushed = true;
    this.#pending = [];
    const room = response.write(pending.length === 1 ? pending[0]! : Buffer.concat(pending));
    if (room || this.#paused) return;
    this.#paused = true;
    this.#armStall();
    this.#call?.pause();
    response.once("drain", this.#onDrain);
  }

  #armStall(): void {
    const { clock, response, socket } = this.#options;
    this.#stopStall = clock.after(CLIENT_STALL_MS, () => {
      if (response.writableFinished || response.destroyed) return;
      // In a pipeline it may be waiting for the answers before it.
      if (response.socket === null) this.#armStall();
      else socket.destroy();
    });
  }

  readonly #onDrain = (): void => {
    this.#paused = false;
    this.#stopStall();
    this.#lastByteMs = this.#options.clock.nowMs();
    if (this.#phase === "passing") this.#call?.resume();
  };

  readonly #onClientGone = (): void => {
    if (this.#phase === "over") return;
    this.#call?.abort();
    this.#settle({ kind: "over", report: this.#report("cancelled") });
  };

  #arm(ms: number, why: string): void {
    this.#stopTimer();
    this.#stopTimer = this.#options.clock.after(ms, () => this.#expire(`${why} after ${ms} ms`));
  }

  /** Looks at the clock when the time is up rather than starting a timer anew with each chunk. */
  #armIdle(idleMs: number): void {
    const { clock } = this.#options;
    this.#stopTimer();
    this.#lastByteMs = clock.nowMs();
    const look = (): void => {
      // While the client is slow the engine isn't asked for anything, so its silence says nothing.
      const leftMs = this.#paused ? idleMs : this.#lastByteMs + idleMs - clock.nowMs();
      if (leftMs <= 0) this.#expire(`silent for ${idleMs} ms`);
      else this.#stopTimer = clock.after(leftMs, look);
    };
    this.#stopTimer = clock.after(idleMs, look);
  }

  #expire(why: string): void {
    if (this.#phase === "over") return;
    this.#call?.abort();
    this.#failure = { kind: "closed", message: why };
    const error: ApiError = { status: 504, code: "engine_timeout", message: `the engine was too slow: ${why}` };
    const report = this.#report("fault");
    if (this.#phase === "holding") {
      this.#settle({ kind: "retry", next: this.#next, held: null, report });
    } else if (this.#phase === "waiting") {
      const next = this.#options.decide({ kind: this.#deadSilence ? "closed" : "timer" });
      if (next.retry !== false) this.#settle({ kind: "retry", next, held: null, report });
      else this.#settle({ kind: "failed", error, report });
    } else {
      this.#breakOff(error);
      this.#settle({ kind: "over", report });
    }
  }

  /** Ends an answer that has begun and can't go on: a stream says so in its own words, anything else is cut. */
  #breakOff(error: ApiError): void {
    const { response } = this.#options;
    if (this.#tail === null || this.#hasLength) {
      response.destroy();
      return;
    }
    this.#flush();
    response.end(`${this.#tail.betweenEvents ? "" : "\n\n"}${errorEvent(error)}`);
  }

  #report(outcome: Outcome): AttemptReport {
    return {
      outcome,
      status: this.#status,
      connectMs: this.#connectMs,
      firstByteMs: this.#firstByteMs,
      endMs: this.#options.clock.nowMs() - this.#startMs,
      bytes: this.#bytes,
      failure: this.#failure,
    };
  }

  #settle(result: AttemptResult): void {
    if (this.#phase === "over") return;
    this.#phase = "over";
    this.#stopTimer();
    this.#stopTotal();
    const { response, socket } = this.#options;
    socket.off("close", this.#onClientGone);
    response.off("drain", this.#onDrain);
    // The rest of a whole answer may still wait for its client.
    if (this.#paused) response.once("drain", this.#stopStall);
    if (result.kind === "retry" && result.held === null) this.#call?.abort();
    this.#resolve(result);
  }
}

/** Everything but what RFC 9112 §4 allows in a reason phrase. */
const UNPRINTABLE = /[^\t\x20-\x7e\x80-\xff]/g;

function noTimer(): void {}
