import { headerOf } from "./headers.ts";

/** How an answer is read: as events, as one JSON document, or not at all. */
export type AnswerKind = "events" | "json" | "unread";

/** @param headers names and values in turn. @returns `unread`: why an answer is not read, such as `content-encoding gzip` */
export function answerKind(status: number, headers: readonly string[]): { kind: AnswerKind; unread: string | null } {
  if (status !== 200) return { kind: "unread", unread: `status ${status}` };
  const encoding = headerOf(headers, "content-encoding") ?? "";
  // A compressed answer is left alone: to read it would cost more than to pass it on.
  if (!/^(identity)?$/i.test(encoding))
    return { kind: "unread", unread: `content-encoding ${encoding.slice(0, SHOWN)}` };
  const type = headerOf(headers, "content-type") ?? "none";
  if (/^text\/event-stream\b/i.test(type)) return { kind: "events", unread: null };
  if (/^application\/([\w.-]+\+)?json\b/i.test(type)) return { kind: "json", unread: null };
  return { kind: "unread", unread: `content-type ${type.slice(0, SHOWN)}` };
}

const SHOWN = 40;
