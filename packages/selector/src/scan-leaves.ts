import { FACT, USE } from "./facts.ts";
import { equals, hadEscape, isDigit, QUOTE, skipString, skipValue, UNUSUAL } from "./json-bytes.ts";
import { NEED } from "./router.ts";
import { FORMAT_TEXT, ITEM_MESSAGE, partNeedOf, roleOf, THINKING_DISABLED } from "./scan-names.ts";

/** Values that the scan reads to the end: each function writes its facts and gives the place after the value. */

/** A wanted string's content goes to the two places from `place`; a value of another type leaves them. */
export function readText(
  place: number,
  body: Uint8Array,
  start: number,
  facts: Uint32Array,
  canonical: boolean,
): number {
  const after = skipWanted(body, start, canonical);
  if (after >= 0 && body[start] === QUOTE) {
    facts[place] = start + 1;
    facts[place + 1] = after - 1;
  }
  return after;
}

export function readRaw(place: number, body: Uint8Array, start: number, facts: Uint32Array): number {
  const after = skipValue(body, start);
  if (after < 0) return UNUSUAL;
  facts[place] = start;
  facts[place + 1] = after;
  return after;
}

export function readFormatType(body: Uint8Array, start: number, facts: Uint32Array, canonical: boolean): number {
  const after = skipWanted(body, start, canonical);
  if (after >= 0 && body[start] === QUOTE && !equals(body, start + 1, after - 1, FORMAT_TEXT))
    facts[FACT.uses]! |= NEED.jsonSchema;
  return after;
}

export function readRole(body: Uint8Array, start: number, facts: Uint32Array, canonical: boolean): number {
  const after = skipWanted(body, start, canonical);
  if (after >= 0 && body[start] === QUOTE) facts[FACT.role] = roleOf(body, start + 1, after - 1);
  return after;
}

/** @param place where the part's need goes: that of a part or of one within it */
export function readPartType(
  place: number,
  body: Uint8Array,
  start: number,
  facts: Uint32Array,
  canonical: boolean,
): number {
  const after = skipWanted(body, start, canonical);
  if (after >= 0 && body[start] === QUOTE) facts[place] = partNeedOf(body, start + 1, after - 1);
  return after;
}

export function readItemType(body: Uint8Array, start: number, facts: Uint32Array, canonical: boolean): number {
  const after = skipWanted(body, start, canonical);
  if (after >= 0 && body[start] === QUOTE)
    facts[FACT.isCall] = equals(body, start + 1, after - 1, ITEM_MESSAGE) ? 0 : 1;
  return after;
}

export function readThinkingType(body: Uint8Array, start: number, facts: Uint32Array, canonical: boolean): number {
  const after = skipWanted(body, start, canonical);
  if (after >= 0 && body[start] === QUOTE && !equals(body, start + 1, after - 1, THINKING_DISABLED))
    facts[FACT.uses]! |= USE.reasoning;
  return after;
}

/** Steps over a value which, where it is a string, is read: an escape would hide what it says. */
function skipWanted(body: Uint8Array, start: number, canonical: boolean): number {
  if (body[start] !== QUOTE) return skipValue(body, start);
  const after = skipString(body, start + 1);
  return hadEscape && !canonical ? UNUSUAL : after;
}

/** More than any engine gives; a number beyond it is this one. */
const COUNT_MAX = 999_999_999;

/** A whole number, the largest of those that share `place`; what is no number leaves it. */
export function readCount(
  place: number,
  body: Uint8Array,
  start: number,
  facts: Uint32Array,
  canonical: boolean,
): number {
  const after = skipValue(body, start);
  if (after < 0) return UNUSUAL;
  let value = 0;
  let at = start;
  while (at < after && at - start < 9 && isDigit(body[at]!)) value = value * 10 + (body[at++]! - 0x30);
  if (at < after) {
    value = 0;
    const first = body[start]!;
    if (first === 0x2d || isDigit(first)) {
      if (!canonical) return UNUSUAL;
      const exact = Number(String.fromCharCode(...body.subarray(start, after)));
      value = Math.min(Math.max(Math.floor(exact), 0), COUNT_MAX);
    }
  }
  if (value > facts[place]!) facts[place] = value;
  return after;
}
