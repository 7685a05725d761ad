/**
 * Prometheus text exposition (0.0.4) and OpenMetrics 1.0 text, as engines send it, to samples. Only series that the
 * caller names have their labels read: a page of vLLM has 600 lines, and ten of them matter.
 */

export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  /** May be NaN or ±Infinity: the format allows them, and what they mean is the reader's to say. */
  readonly value: number;
}

export interface PrometheusPage {
  /** By series name, in the order of the page. */
  readonly samples: ReadonlyMap<string, readonly Sample[]>;
  /** Sample lines of wanted series that could not be read. */
  readonly badLines: number;
  /** The last line has no line feed and is not `# EOF`: the page may be cut off, so that line is not read. */
  readonly truncated: boolean;
}

/** Longest line read. An info series with all of a server's flags takes a few thousand characters. */
const LINE_CHARACTERS = 65_536;

/** Never throws: what can't be read is counted. Timestamps and exemplars are passed over. */
export function parsePrometheusText(text: string, wanted: (name: string) => boolean): PrometheusPage {
  const samples = new Map<string, Sample[]>();
  let badLines = 0;
  let truncated = false;
  let start = 0;
  while (start < text.length) {
    let end = text.indexOf("\n", start);
    if (end === -1) {
      end = text.length;
      if (text.slice(start).trimEnd() !== "# EOF") truncated = true;
    }
    const from = skipBlanks(text, start, end);
    if (!truncated && from < end && text.charCodeAt(from) !== HASH) {
      const nameEnd = endOfName(text, from, end);
      const name = text.slice(from, nameEnd);
      if (wanted(name)) {
        const sample = end - start > LINE_CHARACTERS ? null : parseSample(text, nameEnd, end);
        if (sample === null) badLines++;
        else {
          const list = samples.get(name);
          if (list === undefined) samples.set(name, [sample]);
          else list.push(sample);
        }
      }
    }
    start = end + 1;
  }
  return { samples, badLines, truncated };
}

const HASH = 0x23;
const NAME_END = new Set([" ", "\t", "{", "\r"]);

function endOfName(text: string, from: number, end: number): number {
  let at = from;
  while (at < end && !NAME_END.has(text[at]!)) at++;
  return at;
}

/** What follows the name: labels, value, and then a timestamp or an exemplar that are not read. */
function parseSample(text: string, from: number, end: number): Sample | null {
  let at = skipBlanks(text, from, end);
  const labels: Record<string, string> = {};
  if (text[at] === "{") {
    at = parseLabels(text, at + 1, end, labels);
    if (at === -1) return null;
  }
  at = skipBlanks(text, at, end);
  const valueEnd = endOfName(text, at, end);
  const value = parseValue(text.slice(at, valueEnd));
  return value === null ? null : { labels, value };
}

/** Reads `name="value",…}` into `labels`; gives the position after the brace, or -1 where it is malformed. */
function parseLabels(text: string, from: number, end: number, labels: Record<string, string>): number {
  let at = from;
  for (;;) {
    at = skipBlanks(text, at, end);
    if (at >= end) return -1;
    if (text[at] === "}") return at + 1;
    const equals = text.indexOf("=", at);
    if (equals === -1 || equals >= end) return -1;
    const name = text.slice(at, equals).trim();
    at = skipBlanks(text, equals + 1, end);
    if (name === "" || text[at] !== '"') return -1;
    const close = endOfString(text, at + 1, end);
    if (close === -1) return -1;
    // defineProperty, since a label may be called __proto__.
    const value = unescapeValue(text.slice(at + 1, close));
    Object.defineProperty(labels, name, { value, enumerable: true, configurable: true, writable: true });
    at = skipBlanks(text, close + 1, end);
    if (text[at] === ",") at++;
    else if (text[at] !== "}") return -1;
  }
}

function endOfString(text: string, from: number, end: number): number {
  for (let at = from; at < end; at++) {
    if (text[at] === "\\") at++;
    else if (text[at] === '"') return at;
  }
  return -1;
}

/** `\\`, `\"` and `\n`; a backslash before anything else stands for itself. */
function unescapeValue(raw: string): string {
  if (!raw.includes("\\")) return raw;
  return raw.replace(/\\([\\"n])/g, (_all, escaped: string) => (escaped === "n" ? "\n" : escaped));
}

const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;

function parseValue(token: string): number | null {
  if (NUMBER.test(token)) return Number(token);
  switch (token.toLowerCase()) {
    case "nan":
      return Number.NaN;
    case "inf":
    case "+inf":
    case "infinity":
    case "+infinity":
      return Number.POSITIVE_INFINITY;
    case "-inf":
    case "-infinity":
      return Number.NEGATIVE_INFINITY;
    default:
      return null;
  }
}

function skipBlanks(text: string, from: number, end: number): number {
  let at = from;
  while (at < end && (text[at] === " " || text[at] === "\t" || text[at] === "\r")) at++;
  return at;
}
