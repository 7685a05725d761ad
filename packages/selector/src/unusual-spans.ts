import {
  beginBody,
  CLOSE_BRACE,
  COMMA,
  hadEscape,
  OPEN_BRACE,
  QUOTE,
  skipColon,
  skipSpace,
  skipString,
  skipValue,
  UNUSUAL,
} from "./json-bytes.ts";
import { OUT } from "./router.ts";

/**
 * Where the strings that a gateway needs stand in a body that only `JSON.parse` could read: of equal names the last, as it
 * counts them, and of a string its content with the escapes that it was sent with. Spans are 0, 0 where the value is no
 * string, and where nesting is too deep to be walked.
 *
 * @param body JSON that is an object, as `JSON.parse` has found
 */
export function writeUnusualSpans(body: Uint8Array, out: Uint32Array): void {
  out.fill(0, OUT.modelStart, OUT.modelEnd + 1);
  out.fill(0, OUT.previousStart, OUT.conversationEnd + 1);
  beginBody(body);
  if (readObject(body, skipSpace(body, 0), TOP, out) >= 0) return;
  out.fill(0, OUT.modelStart, OUT.modelEnd + 1);
  out.fill(0, OUT.previousStart, OUT.conversationEnd + 1);
}

const TOP: ReadonlyMap<string, number> = new Map([
  ["model", OUT.modelStart],
  ["previous_response_id", OUT.previousStart],
  ["conversation", OUT.conversationStart],
]);
const CONVERSATION: ReadonlyMap<string, number> = new Map([["id", OUT.conversationStart]]);

/** @returns the place after the object; `UNUSUAL` where it can't be walked */
function readObject(body: Uint8Array, start: number, places: ReadonlyMap<string, number>, out: Uint32Array): number {
  let at = skipSpace(body, start + 1);
  if (body[at] === CLOSE_BRACE) return at + 1;
  while (at < body.length && body[at] === QUOTE) {
    const nameStart = at;
    at = skipString(body, at + 1);
    if (at < 0) return UNUSUAL;
    const place = places.get(nameOf(body.subarray(nameStart, at), hadEscape));
    const value = skipColon(body, at);
    if (value < 0) return UNUSUAL;
    const isConversation = place === OUT.conversationStart && places === TOP && body[value] === OPEN_BRACE;
    if (place !== undefined) out.fill(0, place, place + 2);
    at = isConversation ? readObject(body, value, CONVERSATION, out) : skipValue(body, value);
    if (at < 0) return UNUSUAL;
    if (place !== undefined && body[value] === QUOTE) {
      out[place] = value + 1;
      out[place + 1] = at - 1;
    }
    at = skipSpace(body, at);
    if (body[at] === CLOSE_BRACE) return at + 1;
    if (body[at] !== COMMA) return UNUSUAL;
    at = skipSpace(body, at + 1);
  }
  return UNUSUAL;
}

function nameOf(quoted: Uint8Array, isEscaped: boolean): string {
  const text = Buffer.from(quoted.buffer, quoted.byteOffset, quoted.length).toString();
  return isEscaped ? (JSON.parse(text) as string) : text.slice(1, -1);
}
