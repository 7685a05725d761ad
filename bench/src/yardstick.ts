import type { BenchCase } from "./case.ts";

const TEXTS = 32;
const BYTES = 4096;

/**
 * Work that no change of this repository makes faster or slower, of the two kinds that its hot paths do: `JSON.parse` of a
 * request's size, which is V8's native code, and a hash of bytes in a loop, which is what V8 compiles.
 */
export function yardstick(): BenchCase {
  const messages = [{ role: "user", content: "How long is a piece of string? ".repeat(30) }];
  const texts = Array.from({ length: TEXTS }, (_, at) => JSON.stringify({ model: "m", id: at, messages }));
  const bytes = Uint8Array.from({ length: BYTES }, (_, at) => (at * 31) & 255);
  const run = (): number => {
    let sum = 0;
    for (const text of texts) sum += (JSON.parse(text) as { id: number }).id + hash(bytes);
    return sum;
  };
  return { name: "yardstick", batch: TEXTS, question: "the yardstick", run, answer: run };
}

/** FNV-1a, 32 bits. */
function hash(bytes: Uint8Array): number {
  let value = 0x811c9dc5;
  for (const byte of bytes) value = Math.imul(value ^ byte, 0x01000193);
  return value >>> 0;
}
