/**
 * What an emulated engine says: words drawn from a short list by the prompt alone, so that the same request gets the same
 * text from every engine and a test can name it beforehand. One word is one token.
 */
export function emulatedWords(prompt: string, tokens: number): string[] {
  let state = hashText(prompt);
  return Array.from({ length: tokens }, (_, index) => {
    // A linear congruential step (Numerical Recipes' constants); its high bits are the good ones.
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    const word = WORDS[(state >>> 16) % WORDS.length]!;
    return index === 0 ? word : ` ${word}`;
  });
}

/** A vector of unit length that depends on the text alone. */
export function emulatedEmbedding(text: string, dimensions: number): number[] {
  let state = hashText(text);
  const values = Array.from({ length: dimensions }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 31 - 1;
  });
  const length = Math.hypot(...values) || 1;
  return values.map((value) => value / length);
}

/** The emulator's measure of tokens: a quarter of the bytes, at least one. */
export function countTokens(text: string): number {
  return Math.max(1, Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN));
}

export const BYTES_PER_TOKEN = 4;

/** FNV-1a over UTF-16 units: short, and good enough to tell prompts apart. */
export function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193) >>> 0;
  return hash;
}

const WORDS = [
  "the",
  "vane",
  "turns",
  "a",
  "steady",
  "flow",
  "onto",
  "each",
  "blade",
  "and",
  "little",
  "is",
  "lost",
  "where",
  "water",
  "meets",
  "wheel",
  "at",
  "its",
  "right",
  "angle",
  "so",
  "every",
  "stream",
  "finds",
  "quiet",
  "work",
  "to",
  "do",
  "under",
  "open",
  "sky",
] as const;
