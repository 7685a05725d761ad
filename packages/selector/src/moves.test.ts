import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { seededRandom } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { Moves } from "./moves.ts";
import { createSharedState } from "./shared-state.ts";

function stateOf(moves: number) {
  return createSharedState({ engines: 4, cells: 2, threads: 1, moves });
}

describe("moves", () => {
  it("finds a conversation where it was moved to until it rested for more than ten minutes", () => {
    const moves = new Moves(stateOf(1024));
    expect(moves.find(1, 2, 0, 100)).toBe(-1);
    moves.remember(3, 100);
    expect(moves.find(1, 2, 0, 700)).toBe(3);
    moves.touch(700);
    expect(moves.find(1, 2, 0, 1300)).toBe(3);
    expect(moves.find(1, 2, 0, 1301)).toBe(-1);
  });

  it("keeps the conversations of two cells apart, and takes a use that lies ahead for one of now", () => {
    const moves = new Moves(stateOf(1024));
    moves.find(1, 2, 0, 100);
    moves.remember(3, 100);
    expect(moves.find(1, 2, 1, 100)).toBe(-1);
    moves.remember(2, 100);
    expect([moves.find(1, 2, 0, 99), moves.find(1, 2, 1, 0)]).toEqual([3, 2]);
  });

  it("moves a conversation again, and forgets it", () => {
    const moves = new Moves(stateOf(1024));
    moves.find(1, 2, 0, 1);
    moves.remember(0, 1);
    expect(moves.find(1, 2, 0, 1)).toBe(0);
    moves.remember(3, 1);
    expect(moves.find(1, 2, 0, 1)).toBe(3);
    moves.forget();
    expect(moves.find(1, 2, 0, 1)).toBe(-1);
    moves.forget();
  });

  it("pushes out the conversation that rested longest, and idle ones first", () => {
    const moves = new Moves(stateOf(8));
    for (let key = 0; key < 8; key++) {
      moves.find(key, 0, 0, 10 + key);
      moves.remember(key, 10 + key);
    }
    moves.find(0, 0, 0, 20);
    moves.touch(20);
    moves.find(8, 0, 0, 20);
    moves.remember(1, 20);
    const there = (nowS: number) => Array.from({ length: 10 }, (_, key) => moves.find(key, 0, 0, nowS) >= 0);
    expect(there(20)).toEqual([true, false, true, true, true, true, true, true, true, false]);
    // The third is idle by now, and so are the next four; the ninth key takes the first such entry.
    moves.find(9, 0, 0, 615);
    moves.remember(1, 615);
    expect(moves.find(9, 0, 0, 615)).toBe(1);
    expect(moves.find(0, 0, 0, 615)).toBe(0);
  });

  it("remembers a million conversations in 8 MB, and mistakes few for another", () => {
    const state = stateOf(1_048_576);
    expect(state.moves.byteLength).toBe(8_388_608);
    const moves = new Moves(state);
    const random = seededRandom(3);
    const keys = Array.from({ length: 200_000 }, () => [random() * 2 ** 32, random() * 2 ** 32].map(Math.floor));
    for (const [hash, hash2] of keys) {
      moves.find(hash!, hash2!, 0, 5);
      moves.remember(hash! % 1000, 5);
    }
    let kept = 0;
    for (const [hash, hash2] of keys) if (moves.find(hash!, hash2!, 0, 5) === hash! % 1000) kept++;
    expect(kept / keys.length).toBeGreaterThan(0.999);
    let mistaken = 0;
    for (const [hash, hash2] of keys) if (moves.find(hash! ^ 0x5555, hash2! ^ 0xff, 0, 5) >= 0) mistaken++;
    // A fifth full: 1.5 entries a set, each with one in 65,536 tags.
    expect(mistaken).toBeLessThan(40);
  });

  it("gives what was remembered or nothing while threads write the same entries", async () => {
    const state = stateOf(32);
    const program = `
      const { parentPort, workerData } = require("node:worker_threads");
      const { state, thread, moves, xxh32 } = workerData;
      Promise.all([import(moves), import(xxh32)]).then(([{ Moves }, { xxh32OfWord }]) => {
        const own = new Moves(state);
        let found = 0;
        let wrong = 0;
        for (let round = 0; round < 150_000; round++) {
          const key = xxh32OfWord(round, thread) % 64;
          const slot = own.find(key, Math.imul(key, 0x9e3779b1) >>> 0, 0, Math.floor(round / 1000));
          if (slot < 0) own.remember(xxh32OfWord(key, 5) % 1000, Math.floor(round / 1000));
          else if (slot !== xxh32OfWord(key, 5) % 1000) wrong++;
          else {
            found++;
            if (round % 7 === 0) own.forget();
            else own.touch(Math.floor(round / 1000));
          }
        }
        parentPort.postMessage({ found, wrong });
      });
    `;
    const [moves, xxh32] = ["./moves.ts", "./xxh32.ts"].map((file) => new URL(file, import.meta.url).href);
    const workers = [0, 1].map(
      (thread) => new Worker(program, { eval: true, workerData: { state, thread, moves, xxh32 } }),
    );
    for (const [message] of await Promise.all(workers.map((worker) => once(worker, "message")))) {
      expect(message.wrong).toBe(0);
      expect(message.found).toBeGreaterThan(1000);
    }
    await Promise.all(workers.map((worker) => worker.terminate()));
  });
});
