import { once } from "node:events";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Worker } from "node:worker_threads";
import { seededRandom } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import type { NativeBinding, RouteFunction } from "./binding.ts";
import { loadNative } from "./load.ts";

const load = loadNative();
const skipped = load.binding === null ? ` (skipped: ${load.reason})` : "";
// Only used by tests that are skipped without it.
const binding = load.binding as NativeBinding;

// Places of the selector's HEAD, OUT and ROUTE_STATUS.
const HEAD = { sessionKeyBytes: 3, triedCount: 6, tried: 9, words: 17 };
const OUT = { engine: 0, reason: 3, keySource: 4, home: 5, slot: 7, keyHash: 8, modelStart: 10, words: 26 };
const ASK_TWIN = 255;
const HEALTHY = 0xffff;
const SLOTS = 16;
const ENGINES = 4;

interface Parts {
  words: Uint32Array;
  numbers: Float64Array;
  ring: Uint16Array;
  names: Uint8Array;
  engines: Uint32Array;
  version: Uint32Array;
  inFlight: Uint32Array;
  moves: Uint32Array;
  cells: number;
}

/** One model `m` with one class and one cell of four engines, state slots 3, 2, 1, 0, ring owners 0 1 2 3 0 1 2 3 … */
function parts(): Parts {
  const candidates = Array.from({ length: ENGINES }, (_, i) => [ENGINES - 1 - i, 1000 + i, 0, 0xffffffff, 0]).flat();
  const candidateAt = 7;
  const cellAt = candidateAt + candidates.length;
  const classAt = cellAt + 9;
  const listAt = classAt + 5;
  const modelAt = listAt + 1;
  const nameAt = modelAt + 2;
  const cell = [7, 0, 0, SLOTS, candidateAt, 0, ENGINES, 0, 0];
  const header = [1, modelAt, 1, classAt, 1, nameAt, 1];
  const words = [...header, ...candidates, ...cell, 0, 0, 0, 0, cellAt, 0, listAt, 1, 0, 1, 0];
  return {
    words: Uint32Array.from(words),
    numbers: new Float64Array(2 * ENGINES).fill(1),
    ring: Uint16Array.from({ length: SLOTS }, (_, slot) => slot % ENGINES),
    names: Uint8Array.of(0x6d),
    engines: new Uint32Array(new SharedArrayBuffer(4 * ENGINES)).fill(HEALTHY),
    version: new Uint32Array(new SharedArrayBuffer(4)),
    inFlight: new Uint32Array(new SharedArrayBuffer(4 * (ENGINES + 1))),
    moves: new Uint32Array(new SharedArrayBuffer(4 * 16)),
    cells: 1,
  };
}

function loadParts(all: Parts): RouteFunction {
  const { words, numbers, ring, names, engines, version, inFlight, moves, cells } = all;
  return binding.loadRouter(words, numbers, ring, names, engines, version, inFlight, moves, cells);
}

/** What `attachRouter` takes after the table's number. */
function stateOf({ engines, version, inFlight, moves, cells }: Parts) {
  return [engines, version, inFlight, moves, cells] as const;
}

const encoder = new TextEncoder();
const body = encoder.encode('{"model":"m"}');
/** XXH32 of this text with seed 0 is published: 0xe2293b2f. */
const KEY = encoder.encode("Nobody inspects the spammish repetition");
const KEY_HASH = 0xe2293b2f;

function headOf(key: Uint8Array): { words: Uint32Array; bytes: Uint8Array } {
  const words = new Uint32Array(HEAD.words);
  words[HEAD.sessionKeyBytes] = key.length;
  return { words, bytes: key };
}

describe.skipIf(load.binding === null)(`the native route function${skipped}`, () => {
  it("gives a key to the owner of the slot that its published hash says", () => {
    const route = loadParts(parts());
    const { words, bytes } = headOf(KEY);
    const out = new Uint32Array(OUT.words);
    expect(route(words, bytes, body, out)).toBe(0);
    const slot = KEY_HASH >>> 28;
    expect(out[OUT.keyHash]).toBe(KEY_HASH);
    expect(out[OUT.slot]).toBe(slot);
    expect(out[OUT.engine]).toBe(ENGINES - 1 - (slot % ENGINES));
    expect(out[OUT.home]).toBe(out[OUT.engine]);
    expect([out[OUT.modelStart], out[OUT.modelStart + 1]]).toEqual([10, 11]);
  });

  it("sees what another holder of the shared memory writes, from one call to the next", () => {
    const all = parts();
    const route = loadParts(all);
    const { words, bytes } = headOf(KEY);
    const out = new Uint32Array(OUT.words);
    route(words, bytes, body, out);
    const home = out[OUT.engine]!;
    Atomics.store(all.engines, home, HEALTHY | (1 << 16));
    expect(route(words, bytes, body, out)).toBe(0);
    expect(out[OUT.home]).toBe(home);
    expect(out[OUT.engine]).not.toBe(home);
    Atomics.store(all.engines, home, HEALTHY);
    route(words, bytes, body, out);
    expect(out[OUT.engine]).toBe(home);
  });

  it("leaves what is not plain JSON to the twin, counting its calls", () => {
    const route = loadParts(parts());
    const { words, bytes } = headOf(KEY);
    const out = new Uint32Array(OUT.words);
    expect(route(words, bytes, encoder.encode('{"model":"m","model":"m"}'), out)).toBe(ASK_TWIN);
    expect(out[OUT.keyHash]).toBe(1);
    expect(route(words, bytes, new Uint8Array(0), out)).toBe(ASK_TWIN);
    expect(out[OUT.keyHash]).toBe(2);
  });

  it("reads a detached body as an empty one", () => {
    const route = loadParts(parts());
    const { words, bytes } = headOf(KEY);
    const gone = Uint8Array.from(body);
    structuredClone(gone.buffer, { transfer: [gone.buffer] });
    expect(route(words, bytes, gone, new Uint32Array(OUT.words))).toBe(ASK_TWIN);
  });

  it("answers wrong arguments with an error and goes on", () => {
    const route = loadParts(parts()) as unknown as (...values: unknown[]) => number;
    const { words, bytes } = headOf(KEY);
    const out = new Uint32Array(OUT.words);
    const right = [words, bytes, body, out];
    const wrong: unknown[] = [
      undefined,
      null,
      1,
      "text",
      {},
      [],
      new DataView(new ArrayBuffer(99)),
      new ArrayBuffer(99),
    ];
    for (let place = 0; place < right.length; place++) {
      const short = [
        new Uint32Array(HEAD.words - 1),
        new Int8Array(9),
        new Uint16Array(9),
        new Uint32Array(OUT.words - 1),
      ];
      for (const value of [...wrong, new Float64Array(99), short[place]]) {
        const values = right.with(place, value as never);
        expect(() => route(...values)).toThrow(/must be a Uint/);
      }
      expect(() => route(...right.slice(0, place))).toThrow(/must be a Uint/);
    }
    expect(() => route.apply(undefined, [])).toThrow(Error);
    expect(route(...right)).toBe(0);
  });

  it("refuses bytes that another thread could write to", () => {
    const route = loadParts(parts());
    const { words, bytes } = headOf(KEY);
    const shared = new Uint8Array(new SharedArrayBuffer(64));
    const out = new Uint32Array(OUT.words);
    expect(() => route(words, bytes, shared, out)).toThrow("body must be a Uint8Array, not over shared memory");
    expect(() => route(words, shared, body, out)).toThrow("headBytes must be a Uint8Array, not over shared memory");
  });

  it("takes every array over the same memory without harm", () => {
    const route = loadParts(parts());
    const memory = new ArrayBuffer(256);
    const words = new Uint32Array(memory, 0, 64);
    const bytes = new Uint8Array(memory);
    expect(route(words, bytes, bytes, words)).toBe(ASK_TWIN);
  });
});

describe.skipIf(load.binding === null)(`loading a table natively${skipped}`, () => {
  it("refuses columns that point outside themselves or outside the shared state, saying where", () => {
    const bad = (change: Partial<Parts>) => () => loadParts({ ...parts(), ...change });
    const edited = (place: number, value: number) => ({ words: parts().words.with(place, value) });
    const cellAt = 7 + 5 * ENGINES;
    expect(bad({ words: new Uint32Array(0) })).toThrow(/header/);
    expect(bad({ ring: new Uint16Array(SLOTS).fill(ENGINES) })).toThrow(/owned by engine 4 of 4/);
    expect(bad({ ring: new Uint16Array(SLOTS - 1) })).toThrow(/no 16 ring slots/);
    expect(bad({ numbers: new Float64Array(7) })).toThrow(/candidate 3 of cell 7 has no numbers/);
    expect(bad({ numbers: new Float64Array(8).fill(Number.NaN) })).toThrow(/weight NaN/);
    expect(bad({ names: new Uint8Array(0) })).toThrow(/name 0: 0 \.\. 1/);
    expect(bad(edited(7, ENGINES))).toThrow(/slot 4 of 4/);
    expect(bad(edited(cellAt + 1, 1))).toThrow(/in-flight row 1 of 1/);
    expect(bad(edited(cellAt + 3, 12))).toThrow(/12 slots, not a power of two/);
    expect(bad(edited(cellAt + 6, 0xffffffff))).toThrow(/candidate/);
    expect(bad(edited(0, 0xffffffff))).toThrow(/model/);
    expect(bad(edited(2, 0xffffffff))).toThrow(/in-flight row/);
    expect(bad(edited(3, 0xffffffff))).toThrow(/class: no 5 words/);
  });

  it("refuses state that is not shared memory, or no array of words", () => {
    const bad = (change: object) => () => loadParts({ ...parts(), ...change });
    expect(bad({ engines: new Uint32Array(4) })).toThrow(/SharedArrayBuffer/);
    expect(bad({ inFlight: new Uint32Array(4) })).toThrow(/SharedArrayBuffer/);
    expect(bad({ engines: new Uint32Array(new SharedArrayBuffer(0)) })).toThrow(/one word or more/);
    expect(bad({ engines: new Float32Array(new SharedArrayBuffer(16)) })).toThrow(/Uint32Array/);
    expect(bad({ engines: 5 })).toThrow(Error);
    expect(bad({ moves: new Uint32Array(new SharedArrayBuffer(4 * 48)) })).toThrow(/no power of two of sets/);
    expect(bad({ inFlight: new Uint32Array(new SharedArrayBuffer(4 * 4)) })).toThrow(/4 counts are no rows of 1 cells/);
    expect(bad({ cells: 0 })).toThrow(/no rows of 0 cells/);
    expect(bad({ words: "text" })).toThrow(Error);
  });

  it("survives 5,000 tables of damaged words: each is refused, or routes", () => {
    const random = seededRandom(5);
    const { words, bytes } = headOf(KEY);
    const out = new Uint32Array(OUT.words);
    let routed = 0;
    for (let round = 0; round < 5_000; round++) {
      const all = parts();
      for (let edit = 1 + Math.floor(random() * 3); edit > 0; edit--) {
        const values = [0, 1, 3, 5, 30, 0x7fffffff, 0xfffffffe, 0xffffffff];
        all.words[Math.floor(random() * all.words.length)] = values[Math.floor(random() * values.length)]!;
      }
      let route: RouteFunction;
      try {
        route = loadParts(all);
      } catch (error) {
        expect(error).toMatchObject({ code: "InvalidArg" });
        continue;
      }
      words[HEAD.triedCount] = Math.floor(random() * 12);
      expect(route(words, bytes, body, out)).toBeLessThan(7);
      routed++;
    }
    expect(routed).toBeGreaterThan(500);
  });
});

describe.skipIf(load.binding === null)(`a table shared by threads${skipped}`, () => {
  const path = load.binding === null ? "" : load.path;
  /** Attaches, routes once per message `[words, bytes, body]`, and answers with `out`. */
  const program = `
    const { parentPort, workerData } = require("node:worker_threads");
    const { path, tableId, state } = workerData;
    const binding = require(path);
    const route = binding.attachRouter(tableId, ...state);
    parentPort.on("message", ([words, bytes, body]) => {
      const out = new Uint32Array(${OUT.words});
      const status = route(words, bytes, body, out);
      parentPort.postMessage({ status, out, held: binding.tablesHeld() });
    });
  `;

  it("is loaded once, and answers the same in each of them", async () => {
    // The last refusal that was expected may still hold its function.
    await collected(() => binding.tablesHeld() <= 1);
    const before = binding.tablesHeld();
    const all = parts();
    const route = loadParts(all);
    const { words, bytes } = headOf(KEY);
    const out = new Uint32Array(OUT.words);
    route(words, bytes, body, out);
    const workerData = { path, tableId: route.tableId, state: stateOf(all) };
    const workers = Array.from({ length: 3 }, () => new Worker(program, { eval: true, workerData }));
    for (const worker of workers) {
      worker.postMessage([words, bytes, body]);
      const [answer] = await once(worker, "message");
      expect(answer).toEqual({ status: 0, out, held: before + 1 });
    }
    await Promise.all(workers.map((worker) => worker.terminate()));
    expect(route(words, bytes, body, out)).toBe(0);
  });

  it("is gone once no function of any thread routes by it", async () => {
    let tableId = -1;
    const state = stateOf(parts());
    await once(
      (() => {
        const route = loadParts(parts());
        tableId = route.tableId;
        return new Worker(`${program}; parentPort.close();`, {
          eval: true,
          workerData: { path, tableId, state },
        });
      })(),
      "exit",
    );
    await collected(() => binding.attachRouter(tableId, ...state) === null);
  });

  it("refuses a thread whose shared state has other sizes", () => {
    const route = loadParts(parts());
    const other = new Uint32Array(new SharedArrayBuffer(4 * (2 * ENGINES + 1)));
    const [, version, , moves, cells] = stateOf(parts());
    const rows = new Uint32Array(new SharedArrayBuffer(4 * 2 * (ENGINES + 1)));
    expect(() => binding.attachRouter(route.tableId, other, version, rows, moves, cells)).toThrow(/other sizes/);
  });

  it("is let go in each of 100 loads, and so is the shared memory that it read", async () => {
    const before = binding.tablesHeld();
    const memories = Array.from({ length: 100 }, useOnce).flat();
    expect(binding.tablesHeld()).toBeGreaterThan(before);
    await collected(() => binding.tablesHeld() <= before);
    await collected(() => memories.every((memory) => memory.deref() === undefined));
  });
});

/** Loads a table, routes by it and lets go of it. A function of its own: a frame that waits keeps what it held last. */
function useOnce(): WeakRef<Uint32Array>[] {
  const all = parts();
  const { words, bytes } = headOf(KEY);
  expect(loadParts(all)(words, bytes, body, new Uint32Array(OUT.words))).toBe(0);
  return [new WeakRef(all.engines), new WeakRef(all.inFlight), new WeakRef(all.moves)];
}

/** Collects garbage until `done`; a leak makes the test time out. */
async function collected(done: () => boolean): Promise<void> {
  setFlagsFromString("--expose-gc");
  const gc = runInNewContext("gc") as () => void;
  do {
    // What a WeakRef was asked for stays until its job ends; finalizers run on the event loop.
    await new Promise((resolve) => setImmediate(resolve));
    gc();
    await new Promise((resolve) => setImmediate(resolve));
  } while (!done());
}
