import { ROUTE_STATUS } from "./router.ts";

/** Unusual bodies beyond this are refused: parsing them would hold up every other request of the thread. */
export const UNUSUAL_MAX_BYTES = 1_048_576;

/**
 * What `JSON.parse` makes of a body, written plainly again by `JSON.stringify`: equal names settled (the last counts), no
 * escapes but those that must be. Only routing reads it; the engine gets the client's bytes.
 *
 * Bytes that are not UTF-8 are read as U+FFFD; a byte order mark is none of JSON's, and the body is refused.
 *
 * @returns the bytes, or the status that refuses the body
 */
export function canonicalBody(
  body: Uint8Array,
): Uint8Array | typeof ROUTE_STATUS.notJson | typeof ROUTE_STATUS.tooUnusual {
  if (body.length > UNUSUAL_MAX_BYTES) return ROUTE_STATUS.tooUnusual;
  let value: unknown;
  try {
    value = JSON.parse(decoder.decode(body));
  } catch {
    return ROUTE_STATUS.notJson;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return ROUTE_STATUS.notJson;
  try {
    return encoder.encode(JSON.stringify(value));
  } catch {
    // Nested so deeply that writing it overflows the stack.
    return ROUTE_STATUS.tooUnusual;
  }
}

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const encoder = new TextEncoder();
