/** What the lines of an HTTP/1.1 answer may look like, RFC 9110 and 9112. */

/** RFC 9112 §4: the reason may be empty, and its space with it. What must not leave again in a reason its reader takes out. */
export const STATUS_LINE: RegExp = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: ([^\0\r\n]*))?$/;
/** RFC 9110 §5.1, §5.5: a token, a colon, and a value without control characters; blanks around it are not part of it. */
export const HEADER: RegExp =
  /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*((?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?)[ \t]*$/;

/** What a character may be in: a name, a value, a blank around a value. */
const IN = { name: 1, value: 2, blank: 4 } as const;
const MAY_BE: Uint8Array = Uint8Array.from({ length: 256 }, (_, code) => {
  const character = String.fromCharCode(code);
  return (
    (/[!#$%&'*+\-.^_`|~0-9A-Za-z]/.test(character) ? IN.name : 0) |
    (/[\t\x20-\x7e\x80-\xff]/.test(character) ? IN.value : 0) |
    (/[\t ]/.test(character) ? IN.blank : 0)
  );
});

/** The functions below read a line `text[at..end)` as `HEADER` does, in a fraction of its time. */

/** Place of the CR LF at or after `at`; the text's end where there is none. */
export function endOfLine(text: string, at: number): number {
  const end = text.indexOf("\r\n", at);
  return end < 0 ? text.length : end;
}

/** Place of the colon after a header's name; −1 where the line does not begin with a name and a colon. */
export function endOfName(text: string, at: number, end: number): number {
  let to = at;
  while (to < end && (MAY_BE[text.charCodeAt(to)]! & IN.name) !== 0) to += 1;
  return to > at && to < end && text.charCodeAt(to) === COLON ? to : -1;
}

/** Where a value begins. */
export function pastBlanks(text: string, at: number, end: number): number {
  let from = at;
  while (from < end && (MAY_BE[text.charCodeAt(from)]! & IN.blank) !== 0) from += 1;
  return from;
}

/** Where it ends, which is where it began for an empty one. */
export function beforeBlanks(text: string, from: number, end: number): number {
  let to = end;
  while (to > from && (MAY_BE[text.charCodeAt(to - 1)]! & IN.blank) !== 0) to -= 1;
  return to;
}

export function isValue(text: string, from: number, to: number): boolean {
  for (let at = from; at < to; at++) if ((MAY_BE[text.charCodeAt(at)]! & IN.value) === 0) return false;
  return true;
}

const COLON = 0x3a;

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
