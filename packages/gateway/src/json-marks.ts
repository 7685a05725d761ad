/** Bytes that JSON is marked out by. */

export const SPACE = 0x20;
export const QUOTE = 0x22;
export const COMMA = 0x2c;
export const MINUS = 0x2d;
export const ZERO = 0x30;
export const COLON = 0x3a;
export const OPEN_LIST = 0x5b;
export const CLOSE_LIST = 0x5d;
export const OPEN_OBJECT = 0x7b;
export const CLOSE_OBJECT = 0x7d;

export const MEANS = { nothing: 0, something: 1, quote: 2, open: 3, close: 4 } as const;

/** What a byte means in a list or object that is passed over: spaces and commas nothing, everything else that it is not empty. */
export const SKIP_MEANING: Uint8Array = new Uint8Array(256).fill(MEANS.something);
for (const byte of [0x20, 0x09, 0x0a, 0x0d, COMMA]) SKIP_MEANING[byte] = MEANS.nothing;
SKIP_MEANING[QUOTE] = MEANS.quote;
for (const byte of [OPEN_LIST, OPEN_OBJECT]) SKIP_MEANING[byte] = MEANS.open;
for (const byte of [CLOSE_LIST, CLOSE_OBJECT]) SKIP_MEANING[byte] = MEANS.close;

export function isDigit(byte: number): boolean {
  return byte >= ZERO && byte <= 0x39;
}
