/**
 * JSON (RFC 8259) as bytes, checked as strictly as `JSON.parse` checks text: each function steps over one thing and gives
 * the place after it, or `UNUSUAL` where this is not plainly JSON. Bytes from 0x80 up are taken as they come inside
 * strings, valid UTF-8 or not (a decoder would put U+FFFD there, which JSON allows), and nowhere else.
 */
export const UNUSUAL = -1;

/** Nesting that is stepped over here; engines' own parsers give up sooner. */
export const DEPTH_MAX = 512;

export const QUOTE = 0x22;
const BACKSLASH = 0x5c;
export const COMMA = 0x2c;
export const COLON = 0x3a;
export const OPEN_BRACKET = 0x5b;
export const CLOSE_BRACKET = 0x5d;
export const OPEN_BRACE = 0x7b;
export const CLOSE_BRACE = 0x7d;

/** Whether the string that `skipString` last stepped over has an escape in it. */
export let hadEscape = false;

export function skipSpace(body: Uint8Array, start: number): number {
  let at = start;
  while (at < body.length) {
    const byte = body[at]!;
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) break;
    at++;
  }
  return at;
}

/**
 * Prepares for one body: whether strings need each byte looked at. Control characters, which JSON forbids in strings, are
 * in no body that a serializer wrote without indentation; where there are none at all, a string's end is found at the
 * speed of memchr.
 */
export function beginBody(body: Uint8Array): void {
  controlFree = !hasControl(body);
  nextQuote = -1;
  nextBackslash = -1;
}

/** @param start the byte after the opening quote @returns the place after the closing one */
export function skipString(body: Uint8Array, start: number): number {
  hadEscape = false;
  let at = start;
  for (;;) {
    at = skipText(body, at);
    if (at >= body.length) return UNUSUAL;
    const byte = body[at]!;
    if (byte === QUOTE) return at + 1;
    if (byte !== BACKSLASH) return UNUSUAL;
    hadEscape = true;
    at = skipEscape(body, at + 1);
    if (at < 0) return UNUSUAL;
  }
}

/** To the next quote, backslash or control character, or to the end. */
function skipText(body: Uint8Array, start: number): number {
  let at = start;
  const near = controlFree ? Math.min(start + NEAR_BYTES, body.length) : body.length;
  while (at < near && STOPS[body[at]!] === 0) at++;
  if (at < near || !controlFree) return at;
  // What was found ahead is kept until it is passed: looking again from every escape would cost the square of the length.
  if (nextQuote < at) nextQuote = find(body, QUOTE, at);
  if (nextBackslash < at) nextBackslash = find(body, BACKSLASH, at);
  return Math.min(nextQuote, nextBackslash);
}

/** Names and short words end before a call to memchr pays. */
const NEAR_BYTES = 24;

// Of the body being scanned.
let controlFree = false;
let nextQuote = -1;
let nextBackslash = -1;

/** Node's own search: the one of typed arrays is not vectorised. */
const indexOf = Buffer.prototype.indexOf;

function find(body: Uint8Array, byte: number, start: number): number {
  const at = indexOf.call(body, byte, start);
  return at < 0 ? body.length : at;
}

const BLOCK_BYTES = 65_536;
const block: Uint8Array = new Uint8Array(BLOCK_BYTES);
const blockWords: Int32Array = new Int32Array(block.buffer);

/** Whether any byte is below 0x20. Copied to where four bytes can be read as one word: a body may start anywhere. */
function hasControl(body: Uint8Array): boolean {
  for (let start = 0; start < body.length; start += BLOCK_BYTES) {
    const part = body.length <= BLOCK_BYTES ? body : body.subarray(start, start + BLOCK_BYTES);
    block.set(part);
    const words = part.length >>> 2;
    let found = 0;
    let i = 0;
    // Per byte b of a word: b − 0x20 borrows only when b < 0x20, and ~b clears bytes from 0x80 up.
    for (; i + 4 <= words; i += 4) {
      const a = blockWords[i]!;
      const b = blockWords[i + 1]!;
      const c = blockWords[i + 2]!;
      const d = blockWords[i + 3]!;
      found |= ((a - 0x20202020) & ~a) | ((b - 0x20202020) & ~b) | ((c - 0x20202020) & ~c) | ((d - 0x20202020) & ~d);
    }
    if ((found & HIGH_BITS) !== 0) return true;
    for (let at = i * 4; at < part.length; at++) if (part[at]! < 0x20) return true;
  }
  return false;
}

const HIGH_BITS = 0x80808080 | 0;

/** Any value. @param start its first byte */
export function skipValue(body: Uint8Array, start: number): number {
  let at = start;
  let depth = 0;
  for (;;) {
    // Here a value begins.
    if (at >= body.length) return UNUSUAL;
    const byte = body[at]!;
    if (byte === QUOTE) {
      at = skipString(body, at + 1);
    } else if (byte === OPEN_BRACE) {
      at = skipSpace(body, at + 1);
      if (at < body.length && body[at] === CLOSE_BRACE) {
        at++;
      } else {
        if (depth === DEPTH_MAX) return UNUSUAL;
        closers[depth++] = CLOSE_BRACE;
        at = skipKey(body, at);
        if (at < 0) return UNUSUAL;
        continue;
      }
    } else if (byte === OPEN_BRACKET) {
      at = skipSpace(body, at + 1);
      if (at < body.length && body[at] === CLOSE_BRACKET) {
        at++;
      } else {
        if (depth === DEPTH_MAX) return UNUSUAL;
        closers[depth++] = CLOSE_BRACKET;
        continue;
      }
    } else {
      at = skipScalar(body, at);
    }
    // Here a value has ended.
    for (;;) {
      if (at < 0 || depth === 0) return at;
      at = skipSpace(body, at);
      if (at >= body.length) return UNUSUAL;
      const next = body[at]!;
      const closer = closers[depth - 1]!;
      if (next === COMMA) {
        at = skipSpace(body, at + 1);
        if (closer === CLOSE_BRACE) at = skipKey(body, at);
        if (at < 0) return UNUSUAL;
        break;
      }
      if (next !== closer) return UNUSUAL;
      depth--;
      at++;
    }
  }
}

/** A name, its colon, and space up to the value. */
function skipKey(body: Uint8Array, start: number): number {
  if (start >= body.length || body[start] !== QUOTE) return UNUSUAL;
  const afterName = skipString(body, start + 1);
  return afterName < 0 ? UNUSUAL : skipColon(body, afterName);
}

/** The colon after a name, and the space on both sides. */
export function skipColon(body: Uint8Array, start: number): number {
  const at = skipSpace(body, start);
  return at < body.length && body[at] === COLON ? skipSpace(body, at + 1) : UNUSUAL;
}

export function equals(body: Uint8Array, start: number, end: number, text: Uint8Array): boolean {
  if (end - start !== text.length) return false;
  for (let i = 0; i < text.length; i++) if (body[start + i] !== text[i]) return false;
  return true;
}

const closers = new Uint8Array(DEPTH_MAX);

/** Bytes that end a run of plain text: quote, backslash, control characters. */
const STOPS: Uint8Array = Uint8Array.from({ length: 256 }, (_, byte) =>
  Number(byte < 0x20 || byte === QUOTE || byte === BACKSLASH),
);

const ESCAPES: Uint8Array = new Uint8Array(256);
for (const letter of '"\\/bfnrt') ESCAPES[letter.charCodeAt(0)] = 1;

/** @param start the byte after the backslash */
function skipEscape(body: Uint8Array, start: number): number {
  if (start >= body.length) return UNUSUAL;
  if (ESCAPES[body[start]!] === 1) return start + 1;
  if (body[start] !== 0x75 || start + 5 > body.length) return UNUSUAL;
  for (let at = start + 1; at < start + 5; at++) {
    const byte = body[at]!;
    const lower = byte | 0x20;
    if (!(isDigit(byte) || (lower >= 0x61 && lower <= 0x66))) return UNUSUAL;
  }
  return start + 5;
}

const TRUE: Uint8Array = new TextEncoder().encode("true");
const FALSE: Uint8Array = new TextEncoder().encode("false");
const NULL: Uint8Array = new TextEncoder().encode("null");

function skipScalar(body: Uint8Array, start: number): number {
  const byte = body[start]!;
  if (byte === 0x74) return skipWord(body, start, TRUE);
  if (byte === 0x66) return skipWord(body, start, FALSE);
  if (byte === 0x6e) return skipWord(body, start, NULL);
  return skipNumber(body, start);
}

function skipWord(body: Uint8Array, start: number, word: Uint8Array): number {
  const after = start + word.length;
  return after <= body.length && equals(body, start, after, word) ? after : UNUSUAL;
}

function skipNumber(body: Uint8Array, start: number): number {
  let at = start;
  if (body[at] === 0x2d) at++;
  if (at < body.length && body[at] === 0x30) at++;
  else {
    at = skipDigits(body, at);
    if (at < 0) return UNUSUAL;
  }
  if (at < body.length && body[at] === 0x2e) {
    at = skipDigits(body, at + 1);
    if (at < 0) return UNUSUAL;
  }
  if (at < body.length && (body[at]! | 0x20) === 0x65) {
    at++;
    if (at < body.length && (body[at] === 0x2b || body[at] === 0x2d)) at++;
    return skipDigits(body, at);
  }
  return at;
}

/** One digit or more. */
function skipDigits(body: Uint8Array, start: number): number {
  let at = start;
  while (at < body.length && isDigit(body[at]!)) at++;
  return at === start ? UNUSUAL : at;
}

export function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}
