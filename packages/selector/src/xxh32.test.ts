import { describe, expect, it } from "vitest";
import { xxh32, xxh32OfWord } from "./xxh32.ts";

/** The buffer that xxHash's own self-test hashes (cli/xsum_sanity_check.c, v0.8). */
function sanityBuffer(length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  let generator = 2654435761n;
  for (let i = 0; i < length; i++) {
    bytes[i] = Number(generator >> 56n);
    generator = (generator * 11400714785074694797n) & 0xffff_ffff_ffff_ffffn;
  }
  return bytes;
}

const PRIME = 2654435761;

describe("xxh32", () => {
  it.each([
    [0, 0, 0x02cc5d05],
    [0, PRIME, 0x36b78ae7],
    [1, 0, 0xcf65b03e],
    [1, PRIME, 0xb4545aa4],
    [14, 0, 0x1208e7e2],
    [14, PRIME, 0x6af1d1fe],
    [222, 0, 0x5bd11dbd],
    [222, PRIME, 0x58803c5f],
  ])("gives the published hash of %i bytes with seed %i", (length, seed, expected) => {
    expect(xxh32(sanityBuffer(222), 0, length, seed)).toBe(expected);
  });

  it("gives the published hash of text", () => {
    for (const [text, expected] of [
      ["a", 0x550d7456],
      ["abc", 0x32d153ff],
      ["Nobody inspects the spammish repetition", 0xe2293b2f],
    ] as const) {
      expect(xxh32(Buffer.from(text), 0, text.length, 0)).toBe(expected);
    }
  });

  it("hashes a range as if it stood alone, wherever it starts", () => {
    const buffer = sanityBuffer(222);
    for (const [start, end] of [
      [1, 1],
      [3, 18],
      [5, 21],
      [7, 222],
    ] as const) {
      const alone = buffer.slice(start, end);
      expect(xxh32(buffer, start, end, 9)).toBe(xxh32(alone, 0, alone.length, 9));
    }
  });

  it("hashes a word as its four bytes", () => {
    for (const value of [0, 1, 0x80000000, 0xdeadbeef, 0xffffffff]) {
      const bytes = new Uint8Array(4);
      new DataView(bytes.buffer).setUint32(0, value, true);
      expect(xxh32OfWord(value, 0xfffffff0)).toBe(xxh32(bytes, 0, 4, 0xfffffff0));
    }
  });
});
