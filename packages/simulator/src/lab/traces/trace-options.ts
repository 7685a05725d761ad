import { GuidevaneError } from "@guidevane/core";

/** What a trace does not say, and the lab has to assume. */
export interface TraceOptions {
  readonly name: string;
  /** Clusters that requests come from, with their parts; traces have no region of origin. */
  readonly origins: readonly { readonly cluster: string; readonly part: number; readonly shiftHours: number }[];
  /** Class of its requests. */
  readonly requestClass: string;
  readonly seed: number;
  /** Times so many requests a second as recorded: its clock runs so much faster. Default 1. */
  readonly speed?: number;
  /** Only so much of it, seconds of the lab's clock. */
  readonly seconds?: number;
  /** Requests before are simulated and not counted, ms. Default 0. */
  readonly settleMs?: number;
  /** What requests may say that they come from and are; left out: anything. */
  readonly fleet?: {
    /** As an error calls it. */
    readonly name: string;
    readonly clusters: readonly string[];
    readonly classes: readonly string[];
  };
}

/** A line that a reader could not use. @throws always, GuidevaneError `bad_trace` naming it */
export function badLine(name: string, line: number, what: string, value: unknown): never {
  throw new GuidevaneError("bad_trace", `${name}:${line}: ${what} (got ${JSON.stringify(value)})`);
}

/** @throws GuidevaneError `bad_trace` when it is not a number of at least `least` */
export function numberAt(name: string, line: number, key: string, value: unknown, least: number): number {
  const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  if (typeof number === "number" && Number.isFinite(number) && number >= least) return number;
  return badLine(name, line, `${key} must be a number of ${least} or more`, value);
}

/** Rows of a CSV with a header, as records; quotes are not known here, and none of these files has them. */
export function csvRows(text: string): { line: number; cells: Record<string, string> }[] {
  const lines = text.split(/\r?\n/);
  const names = (lines[0] ?? "").split(",").map((name) => name.trim());
  return lines.slice(1).flatMap((line, index) => {
    if (line.trim() === "" || line.startsWith("#")) return [];
    const cells = line.split(",");
    return [{ line: index + 2, cells: Object.fromEntries(names.map((name, at) => [name, (cells[at] ?? "").trim()])) }];
  });
}

/** Values of a JSONL text. @throws GuidevaneError `bad_trace` naming the line that is none */
export function jsonLines(name: string, text: string): { line: number; value: Record<string, unknown> }[] {
  return text.split(/\r?\n/).flatMap((line, index) => {
    if (line.trim() === "") return [];
    try {
      const value: unknown = JSON.parse(line);
      if (typeof value === "object" && value !== null)
        return [{ line: index + 1, value: value as Record<string, unknown> }];
    } catch {
      // Said below, with what is not an object.
    }
    return badLine(name, index + 1, "is not a JSON object", line.slice(0, 60));
  });
}
