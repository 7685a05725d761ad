import type { EngineRequest } from "./batching-engine.ts";
import { IntMap } from "./int-map.ts";

export const SLOT_STATE = { free: 0, waiting: 1, reading: 2, decoding: 3 } as const;
type SlotState = (typeof SLOT_STATE)[keyof typeof SLOT_STATE];

interface SlotSize {
  ids: Int32Array;
  promptTokens: number;
  outputTokens: number;
  from: number;
  promptBlocks: number;
  afterBlocks: number;
}

const NO_PLACES = new Int32Array(0);

/**
 * The requests of one replica: a line of those that wait, and a heap of those that decode by the reading of the token
 * clock at which they end. Leaving is lazy: an entry of the line or the heap whose stamp is not its slot's is skipped.
 */
export class RequestSlots {
  readonly #sizes: SlotSize[] = [];
  readonly #places: Int32Array[] = [];
  readonly #request: number[] = [];
  readonly #state: SlotState[] = [];
  readonly #stamp: number[] = [];
  readonly #begunAt: number[] = [];
  readonly #fresh: boolean[] = [];
  readonly #free: number[] = [];
  readonly #slotOf = new IntMap();
  /** How many had come before it. */
  readonly #came: number[] = [];
  #added = 0;

  #line: number[] = [];
  #lineHead = 0;
  #waiting = 0;
  #waitingTokens = 0;

  readonly #heapEnd: number[] = [];
  readonly #heapSlot: number[] = [];
  readonly #heapStamp: number[] = [];
  #stamps = 0;
  #begun: number[] = [];

  get waiting(): number {
    return this.#waiting;
  }

  get waitingTokens(): number {
    return this.#waitingTokens;
  }

  add(request: number, size: EngineRequest): void {
    const slot = this.#free.pop() ?? this.#sizes.length;
    const { ids, promptTokens, outputTokens, from, promptBlocks, afterBlocks } = size;
    const held = this.#sizes[slot];
    if (held === undefined) {
      this.#places.push(NO_PLACES);
      this.#sizes.push({ ids, promptTokens, outputTokens, from, promptBlocks, afterBlocks });
    } else {
      held.ids = ids;
      held.promptTokens = promptTokens;
      held.outputTokens = outputTokens;
      held.from = from;
      held.promptBlocks = promptBlocks;
      held.afterBlocks = afterBlocks;
    }
    this.#request[slot] = request;
    this.#fresh[slot] = true;
    this.#came[slot] = this.#added++;
    this.#slotOf.add(request, slot);
    this.#wait(slot);
    this.#line.push(slot, this.#stamp[slot]!);
  }

  at(slot: number): Readonly<SlotSize> {
    return this.#sizes[slot]!;
  }

  /** Places in the memory of the blocks of its prompt, room for so many: the cache's to write. */
  placesOf(slot: number, count: number): Int32Array {
    const places = this.#places[slot]!;
    if (places.length >= count) return places;
    this.#places[slot] = new Int32Array(2 * count);
    return this.#places[slot];
  }

  requestOf(slot: number): number {
    return this.#request[slot]!;
  }

  stateOf(slot: number): SlotState {
    return this.#state[slot]!;
  }

  setState(slot: number, state: SlotState): void {
    this.#state[slot] = state;
  }

  /** Slot of a request that is here; -1 where it is not. */
  find(request: number): number {
    return this.#slotOf.get(request);
  }

  /** In the order in which they came. */
  requests(): number[] {
    const slots = [...this.#state.keys()].filter((slot) => this.#state[slot] !== SLOT_STATE.free);
    return slots.sort((a, b) => this.#came[a]! - this.#came[b]!).map((slot) => this.#request[slot]!);
  }

  /** Slot at the head of the line; only when somebody waits. */
  get firstWaiting(): number {
    for (;;) {
      const slot = this.#line[this.#lineHead]!;
      if (this.#state[slot] === SLOT_STATE.waiting && this.#stamp[slot] === this.#line[this.#lineHead + 1]) return slot;
      this.#lineHead += 2;
    }
  }

  takeWaiting(): void {
    const slot = this.firstWaiting;
    this.#lineHead += 2;
    this.#waiting -= 1;
    this.#waitingTokens -= this.#sizes[slot]!.promptTokens;
    if (this.#lineHead > 64 && this.#lineHead * 2 > this.#line.length) {
      this.#line = this.#line.slice(this.#lineHead);
      this.#lineHead = 0;
    }
  }

  /** Whether the client has seen no token of it yet; asked once, it has. */
  isFirstToken(slot: number): boolean {
    const fresh = this.#fresh[slot]!;
    this.#fresh[slot] = false;
    return fresh;
  }

  decode(slot: number, clock: number, end: number): void {
    this.#state[slot] = SLOT_STATE.decoding;
    this.#begunAt[slot] = clock;
    this.#begun.push(slot, this.#stamp[slot]!);
    if (this.#begun.length > 64 && this.#begun.length > 8 * this.#slotOf.size) this.#tidyBegun();
    this.#push(end, slot, this.#stamp[slot]!);
  }

  /** Reading of the token clock at which the first of those that decode ends. */
  get firstEnd(): number {
    while (this.#heapSlot.length > 0 && !this.#decodes(this.#heapSlot[0]!, this.#heapStamp[0]!)) this.#pop();
    return this.#heapEnd[0] ?? Number.POSITIVE_INFINITY;
  }

  /** The first to end; after `firstEnd`. */
  takeFirst(): number {
    const slot = this.#heapSlot[0]!;
    this.#pop();
    return slot;
  }

  /** Output tokens written since it was begun. */
  written(slot: number, clock: number): number {
    return this.#state[slot] === SLOT_STATE.decoding ? clock - this.#begunAt[slot]! : 0;
  }

  lastBegun(): number {
    for (;;) {
      const stamp = this.#begun.pop()!;
      const slot = this.#begun.pop()!;
      if (this.#decodes(slot, stamp)) return slot;
    }
  }

  /** From decoding to the head of the line: what was written is now part of the prompt. */
  backInLine(slot: number, clock: number): void {
    const size = this.#sizes[slot]!;
    const written = this.written(slot, clock);
    size.promptTokens += written;
    size.outputTokens = Math.max(0, size.outputTokens - written);
    this.#wait(slot);
    if (this.#lineHead >= 2) {
      this.#lineHead -= 2;
      this.#line[this.#lineHead] = slot;
      this.#line[this.#lineHead + 1] = this.#stamp[slot]!;
    } else {
      this.#line.splice(this.#lineHead, 0, slot, this.#stamp[slot]!);
    }
  }

  remove(slot: number): void {
    if (this.#state[slot] === SLOT_STATE.waiting) {
      this.#waiting -= 1;
      this.#waitingTokens -= this.#sizes[slot]!.promptTokens;
    }
    this.#slotOf.delete(this.#request[slot]!);
    this.#state[slot] = SLOT_STATE.free;
    this.#free.push(slot);
  }

  #wait(slot: number): void {
    this.#state[slot] = SLOT_STATE.waiting;
    this.#stamp[slot] = ++this.#stamps;
    this.#waiting += 1;
    this.#waitingTokens += this.#sizes[slot]!.promptTokens;
  }

  #decodes(slot: number, stamp: number): boolean {
    return this.#state[slot] === SLOT_STATE.decoding && this.#stamp[slot] === stamp;
  }

  #tidyBegun(): void {
    const kept: number[] = [];
    for (let i = 0; i < this.#begun.length; i += 2) {
      const [slot, stamp] = [this.#begun[i]!, this.#begun[i + 1]!];
      if (this.#decodes(slot, stamp)) kept.push(slot, stamp);
    }
    this.#begun = kept;
  }

  #push(end: number, slot: number, stamp: number): void {
    let at = this.#heapEnd.length;
    this.#heapEnd.push(end);
    this.#heapSlot.push(slot);
    this.#heapStamp.push(stamp);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (this.#heapEnd[parent]! <= end) break;
      this.#copy(parent, at);
      at = parent;
    }
    this.#set(at, end, slot, stamp);
  }

  #pop(): void {
    const end = this.#heapEnd.pop()!;
    const slot = this.#heapSlot.pop()!;
    const stamp = this.#heapStamp.pop()!;
    const size = this.#heapEnd.length;
    if (size === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= size) break;
      if (child + 1 < size && this.#heapEnd[child + 1]! < this.#heapEnd[child]!) child += 1;
      if (this.#heapEnd[child]! >= end) break;
      this.#copy(child, at);
      at = child;
    }
    this.#set(at, end, slot, stamp);
  }

  #copy(from: number, to: number): void {
    this.#set(to, this.#heapEnd[from]!, this.#heapSlot[from]!, this.#heapStamp[from]!);
  }

  #set(at: number, end: number, slot: number, stamp: number): void {
    this.#heapEnd[at] = end;
    this.#heapSlot[at] = slot;
    this.#heapStamp[at] = stamp;
  }
}
