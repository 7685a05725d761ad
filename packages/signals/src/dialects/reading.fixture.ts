import type { EngineKind } from "@guidevane/core";
import { parsePrometheusText } from "../prometheus-text.ts";
import type { Reading } from "./dialect.ts";
import { dialectOf } from "./index.ts";

/** What the dialect of a kind of engine takes from a page of its metrics. */
export function read(kind: EngineKind, text: string): Reading {
  const dialect = dialectOf(kind)!;
  return dialect.read(parsePrometheusText(text, dialect.wants));
}

export function total(series: ReadonlyMap<string, number>): number {
  return [...series.values()].reduce((sum, value) => sum + value, 0);
}
