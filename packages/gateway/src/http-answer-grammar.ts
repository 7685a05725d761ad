/** What the lines of an HTTP/1.1 answer may look like, RFC 9110 and 9112. */

/** RFC 9112 §4: the reason may be empty, and its space with it. What must not leave again in a reason its reader takes out. */
export const STATUS_LINE: RegExp = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: ([^\0\r\n]*))?$/;
/** RFC 9110 §5.1, §5.5: a token, a colon, and a value without control characters; blanks around it are not part of it. */
export const HEADER: RegExp =
  /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*((?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?)[ \t]*$/;
/** In a head that goes on. */
export const BARE_LINE_END: RegExp = /(?:^|[^\r])\n|\r[^\n]/;
/** By byte: what it is as a hexadecimal digit; −1 = none. */
export const HEX: Int8Array = Int8Array.from({ length: 256 }, (_, byte) =>
  /[0-9A-Fa-f]/.test(String.fromCharCode(byte)) ? Number.parseInt(String.fromCharCode(byte), 16) : -1,
);
export const LENGTH: RegExp = /^\d{1,15}$/;
/** At most 2^44 bytes; extensions are passed over. */
export const SIZE_LINE: RegExp = /^([0-9A-Fa-f]{1,11})(?:[ \t]*;[\t\x20-\x7e\x80-\xff]*)?$/;

/** Whether these bytes from there on are the beginning of an answer, or may become one. */
export function startsLikeHttp(bytes: Buffer, from: number): boolean {
  const length = Math.min(bytes.length - from, HTTP.length);
  return bytes.toString("latin1", from, from + length) === HTTP.slice(0, length);
}

const HTTP = "HTTP/1.";

/** A line of a stranger's, as a message shows it. */
export function shown(text: string): string {
  return JSON.stringify(text.slice(0, 60));
}
