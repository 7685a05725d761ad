import {
  beforeBlanks,
  endOfLine,
  endOfName,
  isValue,
  LENGTH,
  pastBlanks,
  STATUS_LINE,
  shown,
} from "./http-answer-grammar.ts";

/** A head as an engine sent it, and what it says of the body. */
export interface AnswerHead {
  readonly status: number;
  readonly statusText: string;
  /** Names and values in turn. */
  readonly headers: readonly string[];
  /** Bytes of the body; null = the head says none. */
  readonly length: number | null;
  readonly chunked: boolean;
  /** The connection may carry another request, as far as the head says. */
  readonly keepsOpen: boolean;
}

/** Reads a head without its blank line. @returns what is malformed, where something is */
export function readAnswerHead(text: string): AnswerHead | string {
  const lineEnd = endOfLine(text, 0);
  const start = STATUS_LINE.exec(text.slice(0, lineEnd));
  if (start === null) return `status line ${shown(text.slice(0, lineEnd))}`;
  const headers: string[] = [];
  let length: string | null = null;
  let chunked = false;
  let keepsOpen = start[1] === "1";
  for (let at = lineEnd + 2; at < text.length + 2; ) {
    const end = endOfLine(text, at);
    const colon = endOfName(text, at, end);
    const from = pastBlanks(text, colon + 1, end);
    const to = beforeBlanks(text, from, end);
    if (colon < 0 || !isValue(text, from, to)) return `header ${shown(text.slice(at, end))}`;
    const name = text.slice(at, colon);
    const value = text.slice(from, to);
    at = end + 2;
    headers.push(name, value);
    // Lower case only where the length is that of one of the three: it makes a string for each name.
    switch (name.length === 10 || name.length === 14 || name.length === 17 ? name.toLowerCase() : "") {
      case "content-length":
        if (length !== null) return "two content-length headers";
        if (!LENGTH.test(value)) return `content-length ${shown(value)}`;
        length = value;
        break;
      case "transfer-encoding":
        if (chunked || value.toLowerCase() !== "chunked") return `transfer-encoding ${shown(value)}`;
        chunked = true;
        break;
      case "connection":
        if (/\bclose\b/i.test(value)) keepsOpen = false;
    }
  }
  if (chunked && length !== null) return "transfer-encoding and content-length";
  if (chunked && start[1] === "0") return "transfer-encoding in HTTP/1.0";
  const [, , status, statusText = ""] = start;
  return {
    status: Number(status),
    statusText,
    headers,
    length: length === null ? null : Number(length),
    chunked,
    keepsOpen,
  };
}
