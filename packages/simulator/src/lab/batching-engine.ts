import type { EngineParameters } from "./engine-parameters.ts";
import { PrefixCache } from "./prefix-cache.ts";
import { RequestSlots, SLOT_STATE } from "./request-slots.ts";

/** Who hears of a replica's requests. Times are those of the replica, ms. */
export interface EngineSink {
  /** Its prompt begins to be read; so many of its tokens were in the cache. */
  began(request: number, cachedTokens: number): void;
  firstToken(request: number, atMs: number): void;
  finished(request: number, atMs: number): void;
}

/** A request as a replica sees it. `ids[from .. from + afterBlocks]` are the blocks of its prompt and of its answer. */
export interface EngineRequest {
  readonly ids: Int32Array;
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly from: number;
  /** Whole blocks of the prompt. */
  readonly promptBlocks: number;
  /** Whole blocks once it is answered, those of the prompt included. */
  readonly afterBlocks: number;
}

/**
 * One replica with continuous batching. Prompts wait in line and are read one after the other, in chunks that share
 * their steps with decoding; every step gives each decoding request one token, and takes the longer the more there are.
 *
 * Between two events the step time is constant, so steps are not simulated one by one: a token clock counts them, and a
 * request is done when the clock has gone on by its output tokens. An event is the end of a prompt, the end of an answer,
 * or a full KV memory, which sends the request that came last back to the head of the line.
 *
 * Whoever drives it calls `run` at `nextMs`, and asks `nextMs` again after every call that changes something.
 */
export class BatchingEngine {
  readonly parameters: EngineParameters;
  readonly cache: PrefixCache;
  #sink: EngineSink = NOBODY_LISTENS;
  readonly #slots = new RequestSlots();
  /** Steps made since the beginning. */
  #tokenClock = 0;
  #nowMs = 0;
  #slowdown = 1;
  #running = 0;
  /** Slot whose prompt is being read; -1 = none. */
  #reading = -1;
  #readLeftMs = 0;
  #preemptions = 0;
  #doneWork = 0;

  constructor(parameters: EngineParameters) {
    this.parameters = parameters;
    this.cache = new PrefixCache(parameters.kvBlocks);
  }

  /** Who hears of its requests from now on. */
  tell(sink: EngineSink): void {
    this.#sink = sink;
  }

  /** Requests that decode, or whose prompt is being read. */
  get running(): number {
    return this.#running + (this.#reading < 0 ? 0 : 1);
  }

  get waiting(): number {
    return this.#slots.waiting;
  }

  /** Part of the KV memory that running requests hold, 0..1. */
  get kvUsage(): number {
    return Number.isFinite(this.cache.blocks) ? this.cache.held / this.cache.blocks : 0;
  }

  get preemptions(): number {
    return this.#preemptions;
  }

  /** Units of work finished since the beginning: what its utilisation is reckoned from. */
  get doneWork(): number {
    return this.#doneWork;
  }

  /** Prompt tokens, cached or not, of the requests in line. */
  get waitingTokens(): number {
    return this.#slots.waitingTokens;
  }

  /** Every step takes so many times as long from now on. */
  setSlowdown(nowMs: number, factor: number): void {
    this.#advance(nowMs);
    this.#slowdown = factor;
  }

  /** When something happens here next if nothing comes in before; infinite = never. */
  nextMs(): number {
    let inMs = Number.POSITIVE_INFINITY;
    if (this.#reading >= 0) inMs = this.#readLeftMs * this.#prefillFactor();
    if (this.#running > 0) {
      // One alone stays even where the memory is too small for it: nobody else would have its room.
      const toFull = this.#running > 1 ? this.#stepsToFull() : Number.POSITIVE_INFINITY;
      inMs = Math.min(inMs, Math.min(this.#slots.firstEnd - this.#tokenClock, toFull) * this.#stepMs());
    }
    return this.#nowMs + Math.max(0, inMs);
  }

  /** Steps made since the beginning: every request that decodes has had so many more tokens as it has gone on. */
  get tokenClock(): number {
    return this.#tokenClock;
  }

  /** When the token clock will show `reading` if nothing happens before; infinite while nobody decodes. */
  atToken(reading: number): number {
    if (this.#running === 0) return Number.POSITIVE_INFINITY;
    return this.#nowMs + Math.max(0, reading - this.#tokenClock) * this.#stepMs();
  }

  /** Output tokens that a request still has to get; NaN when it is not here. */
  left(request: number): number {
    const slot = this.#slots.find(request);
    if (slot < 0) return Number.NaN;
    return this.#slots.at(slot).outputTokens - this.#slots.written(slot, this.#tokenClock);
  }

  take(nowMs: number, request: number, size: EngineRequest): void {
    this.#advance(nowMs);
    this.#slots.add(request, size);
    this.#readNext();
  }

  /** What was due by `nowMs` happens. */
  run(nowMs: number): void {
    this.#advance(nowMs);
    if (this.#reading >= 0 && this.#readLeftMs <= TINY) this.#endReading();
    while (this.#running > 0 && this.#slots.firstEnd - this.#tokenClock <= TINY) this.#finish(this.#slots.takeFirst());
    while (this.#running > 1 && this.#stepsToFull() <= TINY) this.#preempt();
    this.#readNext();
  }

  /** The client has gone: what it held is free at once. False when the replica has no such request. */
  cancel(nowMs: number, request: number): boolean {
    this.#advance(nowMs);
    const slot = this.#slots.find(request);
    if (slot < 0) return false;
    this.#drop(slot);
    this.#readNext();
    return true;
  }

  /** Everything here is lost, the cache too. Gives the requests that were under way. */
  die(nowMs: number): number[] {
    this.#advance(nowMs);
    const lost = this.#slots.requests();
    for (const request of lost) this.#drop(this.#slots.find(request));
    this.forget();
    return lost;
  }

  /** Empties the cache of what nobody holds. */
  forget(): void {
    this.cache.giveUpKept();
  }

  #advance(nowMs: number): void {
    const ms = nowMs - this.#nowMs;
    if (ms <= 0) return;
    this.#nowMs = nowMs;
    if (this.#running > 0) {
      const steps = ms / this.#stepMs();
      const tokens = steps * this.#running;
      this.#tokenClock += steps;
      this.#doneWork += (tokens * this.parameters.work.decodePerKtok) / 1000;
      this.cache.addPrivate(tokens / this.parameters.blockTokens);
    }
    if (this.#reading >= 0) this.#readLeftMs -= ms / this.#prefillFactor();
  }

  #stepMs(): number {
    const table = this.#reading < 0 ? this.parameters.stepMs : this.parameters.mixedStepMs;
    return table[this.#running]! * this.#slowdown;
  }

  #prefillFactor(): number {
    return this.parameters.prefillFactor[this.#running]! * this.#slowdown;
  }

  /** Steps until not even giving up all kept blocks makes room for what is written. */
  #stepsToFull(): number {
    const { cache } = this;
    return ((cache.free + cache.kept) * this.parameters.blockTokens) / this.#running;
  }

  /** Begins to read the next prompt where there is room for it in the batch and in the memory. */
  #readNext(): void {
    if (this.#reading >= 0 || this.#slots.waiting === 0 || this.#running >= this.parameters.maxRunning) return;
    const { cache, parameters } = this;
    const slots = this.#slots;
    const slot = slots.firstWaiting;
    const { ids, from, promptBlocks, promptTokens } = slots.at(slot);
    const ownBlocks = promptTokens / parameters.blockTokens - promptBlocks;
    const places = slots.placesOf(slot, promptBlocks);
    const found = cache.find(ids, from, promptBlocks, places);
    // Blocks found but held by nobody are counted as kept: taking them leaves less to give up.
    if (this.running > 0 && !cache.hasRoom(promptBlocks + ownBlocks + WATERMARK * Math.min(cache.blocks, 1e9))) return;
    slots.takeWaiting();
    cache.hold(ids, from, promptBlocks, places, found);
    cache.addPrivate(ownBlocks);
    const cachedTokens = Math.min(found * parameters.blockTokens, promptTokens - 1);
    const { fixedMs, msPerTok, leastMs } = parameters.prefill;
    this.#reading = slot;
    this.#readLeftMs = Math.max(leastMs, fixedMs + msPerTok * (promptTokens - cachedTokens));
    this.#doneWork += ((promptTokens - cachedTokens) * parameters.work.prefillPerKtok) / 1000;
    slots.setState(slot, SLOT_STATE.reading);
    this.#sink.began(slots.requestOf(slot), cachedTokens);
  }

  #endReading(): void {
    const slot = this.#reading;
    const slots = this.#slots;
    this.#reading = -1;
    if (slots.isFirstToken(slot))
      this.#sink.firstToken(slots.requestOf(slot), this.#nowMs + this.parameters.overheadMs * this.#slowdown);
    const outputTokens = slots.at(slot).outputTokens;
    if (outputTokens <= 0) {
      this.#leave(slot, true);
      return;
    }
    this.#running += 1;
    slots.decode(slot, this.#tokenClock, this.#tokenClock + outputTokens);
  }

  #finish(slot: number): void {
    this.#running -= 1;
    this.#leave(slot, true);
  }

  /** Frees what a slot holds of the memory, the slot too. */
  #leave(slot: number, done: boolean): void {
    const slots = this.#slots;
    this.#free(slot, done);
    const request = slots.requestOf(slot);
    slots.remove(slot);
    if (done) this.#sink.finished(request, this.#nowMs + this.parameters.overheadMs * this.#slowdown);
  }

  /** Gives back what a slot holds; what it wrote stays in the cache where it is `done`. */
  #free(slot: number, done: boolean): void {
    const { ids, from, promptBlocks, afterBlocks, promptTokens } = this.#slots.at(slot);
    const written = this.#slots.written(slot, this.#tokenClock);
    this.cache.addPrivate(promptBlocks - (promptTokens + written) / this.parameters.blockTokens);
    if (done) this.cache.keep(ids, from + promptBlocks, afterBlocks - promptBlocks);
    this.cache.release(this.#slots.placesOf(slot, promptBlocks), promptBlocks);
  }

  #drop(slot: number): void {
    const state = this.#slots.stateOf(slot);
    if (state === SLOT_STATE.waiting) {
      this.#slots.remove(slot);
      return;
    }
    if (state === SLOT_STATE.reading) this.#reading = -1;
    else this.#running -= 1;
    this.#leave(slot, false);
  }

  /** The request that began last gives its memory back, and will have to be read again, its answer so far included. */
  #preempt(): void {
    const slot = this.#slots.lastBegun();
    this.#preemptions += 1;
    this.#running -= 1;
    this.#free(slot, false);
    this.#slots.backInLine(slot, this.#tokenClock);
  }
}

const NOBODY_LISTENS: EngineSink = { began() {}, firstToken() {}, finished() {} };
/** Steps and ms: below it an event is due, for times are sums of many roundings. */
const TINY = 1e-7;
/** Part of the memory that must stay free when a request begins, so that those running can go on a while. */
const WATERMARK = 0.01;
