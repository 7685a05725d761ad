/**
 * Memory that the threads of one process share: what is known of engines, how many streams run where, and which
 * conversations were moved. Plain data over SharedArrayBuffers, so that it can be handed to a worker thread as it is:
 *
 *     engines   one state word (`STATE`) per engine slot, written by `setEngine` on the main thread alone
 *     version   one word that rises when a state word changes: what is derived from many of them is kept until then
 *     inFlight  streams under way, a row per thread and cell: row `thread × cells + cell` has a count per engine slot and,
 *               last, their sum. A thread writes its own rows only, so a count never waits for another thread; readers sum
 *               over the threads. Pages are touched when used, so that room for threads and cells not used costs nothing
 *     moves     where moved conversations are, see `moves.ts`; any thread writes any entry
 *
 * Every access is by `Atomics`, on the native side by Rust's atomics.
 */
export interface SharedState {
  readonly engines: Uint32Array;
  readonly version: Uint32Array;
  readonly inFlight: Uint32Array;
  readonly moves: Uint32Array;
  /** Threads that have rows. */
  readonly threads: number;
  /** Rows of a thread. */
  readonly cells: number;
}

/** The low 16 bits of a state word are the factor that the engine's share is multiplied by, in 1/65535ths. */
export const STATE = {
  factorMask: 0xffff,
  /** Takes nothing: refused connections, zero ready replicas, taken out. */
  out: 1 << 16,
  /** Takes nothing new; not a fault. */
  draining: 1 << 17,
  /** Told us to wait (Retry-After): last choice. */
  cooling: 1 << 18,
  /** Out by probes alone: still a candidate when nothing else is left (`fail-open`). */
  outByProbe: 1 << 19,
} as const;
export const STATE_HEALTHY: number = STATE.factorMask;

/** How much a process can hold at once. */
export interface StateSize {
  /** Engine slots: at most `ENGINES_MAX`. */
  readonly engines: number;
  readonly cells: number;
  readonly threads: number;
  /** Moved conversations to remember: a power of two, 8 or more; each is 8 bytes. */
  readonly moves: number;
}

/** An entry of the moves holds 1 + an engine slot in 16 bits. */
export const ENGINES_MAX = 0xfffe;

/** All engines healthy, no stream, nothing moved. */
export function createSharedState({ engines, cells, threads, moves }: StateSize): SharedState {
  const words = (count: number) => new Uint32Array(new SharedArrayBuffer(count * Uint32Array.BYTES_PER_ELEMENT));
  return {
    engines: words(engines).fill(STATE_HEALTHY),
    version: words(1),
    inFlight: words(threads * cells * (engines + 1)),
    moves: words(moves * 2),
    threads,
    cells,
  };
}

/** Writes an engine's state word. One thread does, or a change could be lost. */
export function setEngine({ engines, version }: SharedState, slot: number, word: number): void {
  if (Atomics.exchange(engines, slot, word) !== word) Atomics.add(version, 0, 1);
}

/**
 * Counts streams in (above 0) or out (below) of a cell at an engine.
 *
 * @param thread the caller's own
 * @param cell the cell's row, `RoutingTable.inFlightRows`
 */
export function countStreams(state: SharedState, thread: number, cell: number, slot: number, change: number): void {
  const { inFlight, engines } = state;
  const row = rowAt(state, thread, cell);
  Atomics.add(inFlight, row + slot, change);
  Atomics.add(inFlight, row + engines.length, change);
}

/** Streams of a cell at an engine, of all threads. */
export function streamsAt(state: SharedState, cell: number, slot: number): number {
  let sum = 0;
  for (let thread = 0; thread < state.threads; thread++)
    sum = (sum + Atomics.load(state.inFlight, rowAt(state, thread, cell) + slot)) | 0;
  return sum >>> 0;
}

/** Streams of a cell, of all threads. */
export function streamsOfCell(state: SharedState, cell: number): number {
  return streamsAt(state, cell, state.engines.length);
}

/** Streams at an engine, of all cells and threads. */
export function streamsOfEngine(state: SharedState, slot: number): number {
  let sum = 0;
  for (let cell = 0; cell < state.cells; cell++) sum += streamsAt(state, cell, slot);
  return sum;
}

/** Forgets the streams of a thread that is no more, or they would be held against engines for ever. */
export function clearThread(state: SharedState, thread: number): void {
  const start = rowAt(state, thread, 0);
  const end = rowAt(state, thread + 1, 0);
  for (let at = start; at < end; at++) clear(state.inFlight, at);
}

/** Forgets what is left in an engine's column before the slot is another engine's. */
export function clearEngine(state: SharedState, slot: number): void {
  const total = state.engines.length;
  for (let row = 0; row < state.inFlight.length; row += total + 1) {
    const left = clear(state.inFlight, row + slot);
    if (left !== 0) Atomics.sub(state.inFlight, row + total, left);
  }
}

/** Forgets what is left in a cell's rows before they are another cell's. */
export function clearCell(state: SharedState, cell: number): void {
  for (let thread = 0; thread < state.threads; thread++) {
    const start = rowAt(state, thread, cell);
    for (let at = start; at <= start + state.engines.length; at++) clear(state.inFlight, at);
  }
}

/** Only written where it must be: memory that was never written costs nothing. */
function clear(counts: Uint32Array, at: number): number {
  return Atomics.load(counts, at) === 0 ? 0 : Atomics.exchange(counts, at, 0);
}

function rowAt({ cells, engines }: SharedState, thread: number, cell: number): number {
  return (thread * cells + cell) * (engines.length + 1);
}
