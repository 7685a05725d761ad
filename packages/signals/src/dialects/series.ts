import type { PrometheusPage, Sample } from "../prometheus-text.ts";
import type { Said } from "./dialect.ts";

/** The samples of the first of these names that the page has. */
export function firstOf(page: PrometheusPage, names: readonly string[]): readonly Sample[] {
  for (const name of names) {
    const samples = page.samples.get(name);
    if (samples !== undefined) return samples;
  }
  return [];
}

/** Sum over ranks and models. One of them without a number makes the whole unknown: the rest would pass for the total. */
export function sumOf(samples: readonly Sample[]): number | "missing" {
  if (samples.length === 0) return "missing";
  let total = 0;
  for (const { value } of samples) {
    if (!Number.isFinite(value) || value < 0) return "missing";
    total += value;
  }
  return total;
}

export function averageOf(samples: readonly Sample[]): number | "missing" {
  const total = sumOf(samples);
  return total === "missing" ? "missing" : total / samples.length;
}

/**
 * One sample for each group of samples that differ by `label` only, the largest: the ranks of one tensor-parallel group
 * hold the same requests and each tell of them.
 */
export function onceFor(samples: readonly Sample[], label: string): readonly Sample[] {
  const groups = new Map<string, Sample>();
  for (const sample of samples) {
    const key = labelsKey(sample.labels, label);
    const known = groups.get(key);
    // NaN is no number, and stays one where it meets one.
    if (known === undefined || !(known.value >= sample.value)) groups.set(key, sample);
  }
  return [...groups.values()];
}

/**
 * A counter by series, without those whose value is no count. Prometheus clients add `_total` to a counter and design
 * documents leave it out, so both are read, and never both at once.
 */
export function counterOf(page: PrometheusPage, name: string): ReadonlyMap<string, number> {
  return bySeries(firstOf(page, [`${name}_total`, name]));
}

export function bySeries(samples: readonly Sample[]): ReadonlyMap<string, number> {
  const series = new Map<string, number>();
  for (const { labels, value } of samples)
    if (Number.isFinite(value) && value >= 0) series.set(labelsKey(labels, null), value);
  return series;
}

/** Both spellings of each counter's name. */
export function counterNames(names: readonly string[]): string[] {
  return names.flatMap((name) => [name, `${name}_total`]);
}

/** The quotient, where both are numbers and the lower one is above 0. */
export function ratioOf(upper: Said, lower: Said): number | "missing" {
  return typeof upper === "number" && typeof lower === "number" && lower > 0 ? upper / lower : "missing";
}

export const NO_COUNTS: ReadonlyMap<string, number> = new Map();

function labelsKey(labels: Readonly<Record<string, string>>, without: string | null): string {
  return JSON.stringify(
    Object.entries(labels)
      .filter(([name]) => name !== without)
      .sort(),
  );
}
