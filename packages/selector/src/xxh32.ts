/**
 * XXH32 (Yann Collet; github.com/Cyan4973/xxHash, doc/xxhash_spec.md) of a range of bytes. 32 bits are enough to pick
 * one of some thousand slots, and a 64-bit hash costs JavaScript twice as much.
 *
 * @returns the hash as an unsigned 32-bit integer
 */
export function xxh32(bytes: Uint8Array, start: number, end: number, seed: number): number {
  return xxh32Bits(bytes, start, end, seed) >>> 0;
}

/** The same 32 bits as a signed integer, which V8 passes around without putting it on the heap. */
export function xxh32Bits(bytes: Uint8Array, start: number, end: number, seed: number): number {
  let at = start;
  let hash: number;
  if (end - start >= 16) {
    let lane1 = (seed + PRIME1 + PRIME2) | 0;
    let lane2 = (seed + PRIME2) | 0;
    let lane3 = seed | 0;
    let lane4 = (seed - PRIME1) | 0;
    const lastStripe = end - 16;
    do {
      lane1 = round(lane1, word(bytes, at));
      lane2 = round(lane2, word(bytes, at + 4));
      lane3 = round(lane3, word(bytes, at + 8));
      lane4 = round(lane4, word(bytes, at + 12));
      at += 16;
    } while (at <= lastStripe);
    hash = (rotate(lane1, 1) + rotate(lane2, 7) + rotate(lane3, 12) + rotate(lane4, 18)) | 0;
  } else {
    hash = (seed + PRIME5) | 0;
  }
  hash = (hash + (end - start)) | 0;
  for (; at + 4 <= end; at += 4) hash = mixWord(hash, word(bytes, at));
  for (; at < end; at++) hash = Math.imul(rotate((hash + Math.imul(bytes[at]!, PRIME5)) | 0, 11), PRIME1);
  return avalanche(hash) | 0;
}

/** XXH32 of the four bytes of `value`, little endian: a draw that depends on both words. */
export function xxh32OfWord(value: number, seed: number): number {
  return avalanche(mixWord((seed + PRIME5 + 4) | 0, value));
}

const PRIME1 = 0x9e3779b1;
const PRIME2 = 0x85ebca77;
const PRIME3 = 0xc2b2ae3d;
const PRIME4 = 0x27d4eb2f;
const PRIME5 = 0x165667b1;

function word(bytes: Uint8Array, at: number): number {
  return bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
}

function rotate(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits));
}

function round(lane: number, input: number): number {
  return Math.imul(rotate((lane + Math.imul(input, PRIME2)) | 0, 13), PRIME1);
}

function mixWord(hash: number, input: number): number {
  return Math.imul(rotate((hash + Math.imul(input, PRIME3)) | 0, 17), PRIME4);
}

function avalanche(value: number): number {
  let hash = value;
  hash = Math.imul(hash ^ (hash >>> 15), PRIME2);
  hash = Math.imul(hash ^ (hash >>> 13), PRIME3);
  return (hash ^ (hash >>> 16)) >>> 0;
}
