/**
 * HTTP/1.1 as the RFC has it and nothing more, read from whole byte strings: what the fuzz holds the gateway to. Written
 * apart from the parsers that the gateway uses, so that they can't share a mistake.
 */

export interface StrictMessage {
  readonly startLine: string;
  /** Names in lower case. */
  readonly headers: readonly (readonly [string, string])[];
  readonly body: Buffer;
}

export interface StrictRead {
  readonly messages: readonly StrictMessage[];
  /** Why nothing was read from there on; null = the bytes ended with the last message. */
  readonly stoppedBy: "bad" | "incomplete" | "closing" | null;
}

type Body = { readonly bytes: Buffer; readonly end: number } | "bad" | "incomplete";

/** Every request of a connection, up to the first byte that could be read in two ways. */
export function readRequests(bytes: Buffer): StrictRead {
  const messages: StrictMessage[] = [];
  let at = 0;
  for (;;) {
    // Empty lines before a request are ignored (RFC 9112 §2.2).
    while (at < bytes.length && (bytes[at] === CR || bytes[at] === LF)) at += 1;
    if (at === bytes.length) return { messages, stoppedBy: null };
    const head = readHead(bytes, at);
    if (typeof head === "string") return { messages, stoppedBy: head };
    // Several spaces for one may be taken (RFC 9112 §3).
    if (!/^[A-Z-]+ +\S+ +HTTP\/1\.[01]$/.test(head.startLine)) return { messages, stoppedBy: "bad" };
    const body = framed(head, bytes, () => ({ bytes: Buffer.alloc(0), end: head.end }));
    if (typeof body === "string") return { messages, stoppedBy: body };
    messages.push({ startLine: head.startLine, headers: head.headers, body: body.bytes });
    at = body.end;
    const connection = valuesOf(head, "connection").join(",").toLowerCase();
    if (/\bclose\b/.test(connection) || head.startLine.startsWith("CONNECT "))
      return { messages, stoppedBy: "closing" };
  }
}

/** Every answer of a connection, none of them to HEAD. @param ended whether the connection was closed */
export function readAnswers(bytes: Buffer, ended: boolean): StrictRead {
  const messages: StrictMessage[] = [];
  let at = 0;
  while (at < bytes.length) {
    const head = readHead(bytes, at);
    if (typeof head === "string") return { messages, stoppedBy: head };
    const status = Number(/^HTTP\/1\.1 ([1-9]\d\d) [\t\x20-\x7e\x80-\xff]*$/.exec(head.startLine)?.[1]);
    if (!(status >= 100)) return { messages, stoppedBy: "bad" };
    const bodyless = status < 200 || status === 204 || status === 304;
    const toTheEnd = (): Body => (ended ? { bytes: bytes.subarray(head.end), end: bytes.length } : "incomplete");
    const body = bodyless ? { bytes: Buffer.alloc(0), end: head.end } : framed(head, bytes, toTheEnd);
    if (typeof body === "string") return { messages, stoppedBy: body };
    messages.push({ startLine: head.startLine, headers: head.headers, body: body.bytes });
    at = body.end;
  }
  return { messages, stoppedBy: null };
}

interface Head {
  readonly startLine: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly end: number;
}

const CR = 13;
const LF = 10;
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

function readHead(bytes: Buffer, from: number): Head | "bad" | "incomplete" {
  const end = bytes.indexOf("\r\n\r\n", from);
  if (end < 0) return "incomplete";
  const [startLine = "", ...lines] = bytes.toString("latin1", from, end).split("\r\n");
  if ([startLine, ...lines].some((line) => /[\0\r\n]/.test(line))) return "bad";
  const headers: [string, string][] = [];
  for (const line of lines) {
    const colon = line.indexOf(":");
    if (colon < 0 || !TOKEN.test(line.slice(0, colon))) return "bad";
    headers.push([line.slice(0, colon).toLowerCase(), line.slice(colon + 1).replace(/^[ \t]+|[ \t]+$/g, "")]);
  }
  return { startLine, headers, end: end + 4 };
}

function valuesOf({ headers }: Head, name: string): string[] {
  return headers.filter(([each]) => each === name).map(([, value]) => value);
}

function framed(head: Head, bytes: Buffer, unframed: () => Body): Body {
  const lengths = valuesOf(head, "content-length");
  const codings = valuesOf(head, "transfer-encoding");
  if (lengths.length + codings.length > 1) return "bad";
  if (codings.length === 1) return codings[0]!.toLowerCase() === "chunked" ? chunks(bytes, head.end) : "bad";
  if (lengths.length === 0) return unframed();
  if (!/^\d{1,15}$/.test(lengths[0]!)) return "bad";
  const end = head.end + Number(lengths[0]);
  return end > bytes.length ? "incomplete" : { bytes: bytes.subarray(head.end, end), end };
}

function chunks(bytes: Buffer, from: number): Body {
  const parts: Buffer[] = [];
  let at = from;
  for (;;) {
    const line = bytes.indexOf("\r\n", at);
    if (line < 0) return "incomplete";
    const size = /^([0-9A-Fa-f]{1,13})(?:;[^\r\n]*)?$/.exec(bytes.toString("latin1", at, line))?.[1];
    if (size === undefined) return "bad";
    at = line + 2;
    const length = Number.parseInt(size, 16);
    if (length === 0) break;
    if (at + length + 2 > bytes.length) return "incomplete";
    parts.push(bytes.subarray(at, at + length));
    if (bytes[at + length] !== CR || bytes[at + length + 1] !== LF) return "bad";
    at += length + 2;
  }
  // What trails is headers again, up to an empty line.
  const end = bytes.indexOf("\r\n\r\n", at - 2);
  return end < 0 ? "incomplete" : { bytes: Buffer.concat(parts), end: end + 4 };
}
