import { type FeedEvent, parseFeedEvent } from "@guidevane/core";

/** A word on fewer engines than this is one part. */
const ENGINES_A_PART = 64;
/** Text of which no event has to be cut: it is read in a fraction of a millisecond. */
const SMALL = 16_384;

/**
 * What an event of the feed says, in small parts: signals of a thousand engines are text of a quarter of a megabyte, which a
 * thread that serves requests does not read in one turn. Each part is an event of its own, of some of the engines; what
 * can't be read is left out.
 */
export function* feedParts(name: string, data: string): Generator<FeedEvent> {
  const texts = name === "signals" && data.length > SMALL && data.startsWith(HEAD) ? cut(data) : [data];
  for (const text of texts) {
    const event = parseFeedEvent(name, text);
    if (event !== null) yield event;
  }
}

/** How the control plane writes the event. */
const HEAD = '{"engines":{';
const TAIL = "}}";

/** Cuts behind every so many engines, where the object of one is closed. */
function* cut(data: string): Generator<string> {
  let from = HEAD.length;
  let engines = 0;
  let depth = 0;
  for (let at = from; at < data.length; at++) {
    const mark = data.charCodeAt(at);
    if (mark === QUOTE) at = endOfText(data, at);
    else if (mark === OPEN) depth += 1;
    else if (mark === CLOSE) {
      depth -= 1;
      // The object of all engines.
      if (depth < 0) break;
      if (depth > 0 || ++engines % ENGINES_A_PART !== 0) continue;
      yield HEAD + data.slice(from, at + 1) + TAIL;
      from = at + 2;
    }
  }
  if (engines % ENGINES_A_PART !== 0) yield HEAD + data.slice(from);
}

/** Where a text that begins at `at` has its closing quote. */
function endOfText(data: string, at: number): number {
  let end = at + 1;
  for (; end < data.length && data.charCodeAt(end) !== QUOTE; end++) if (data.charCodeAt(end) === BACKSLASH) end += 1;
  return end;
}

const QUOTE = 34;
const BACKSLASH = 92;
const OPEN = 123;
const CLOSE = 125;
