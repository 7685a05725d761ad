import type { Explanation } from "./explain.ts";
import type { EngineExplanation } from "./explain-engine.ts";

/** What holds an engine's share, each with the words for it. */
export const BINDING = {
  none: "nothing but costs that meet: one more request here costs what it costs elsewhere",
  capacity: "the engine is full",
  headroom: "the engine is in its headroom, where the last units cost extra",
  knot: "the engine rests on a knot of its curve: less would be cheap to take, more is dear",
  move: "moving a request here is not worth the price of a move",
  cost: "it is dearer than the engines in use",
  pin: "an operator set it",
  out: "the engine has no capacity: it is out, draining or not ready",
} as const;
export type Binding = keyof typeof BINDING;

export function ms(value: number): string {
  return `${value.toFixed(2)} ms`;
}

function percent(part: number): string {
  return `${(100 * part).toFixed(2)} %`;
}

/** What a cell does with its requests, and why not otherwise. */
export function cellSentence({
  cluster,
  class: name,
  demandPriceMs,
  engines,
  whyShed: shed,
  pinnedUntil,
}: Omit<Explanation, "sentence">): string {
  const used = engines.filter(({ isUsed }) => isUsed);
  const where = used.map(({ engine, weight }) => `${percent(weight)} to ${engine}`).join(", ");
  const next = engines.find(({ isUsed, capacityWps }) => !isUsed && capacityWps > 0);
  const parts = [
    `${cluster} sends ${name} ${where === "" ? "nowhere" : where}: one more request costs the fleet ${ms(demandPriceMs)} wherever it goes`,
  ];
  if (pinnedUntil !== null) parts[0] = `${cluster} sends ${name} ${where}, by an operator's word until ${pinnedUntil}`;
  if (next !== undefined)
    parts.push(`${next.engine}, the next best, would have to be ${ms(next.reducedCostMs)} cheaper`);
  if (shed !== null) parts.push(shed);
  return `${parts.join("; ")}.`;
}

/** Why an engine has its weight, or none. */
export function engineSentence(
  { cluster, class: name, demandPriceMs, pinnedUntil }: Explanation,
  each: EngineExplanation,
): string {
  const { engine, weight, isUsed, addends, sumMs, reducedCostMs, binds, faster, priceRangeMs } = each;
  const { networkMs, serviceMs, ownWaitMs, inflictedMs, capacityPriceMs, stabilityMs } = addends;
  if (binds === "out") return `${engine} gets nothing of ${cluster}'s ${name}: ${BINDING.out}.`;
  const made = [
    `${ms(networkMs)} of network`,
    `${ms(serviceMs)} of service`,
    `${ms(ownWaitMs)} of waiting`,
    `${ms(inflictedMs)} that others wait longer`,
    ...(capacityPriceMs > 0 ? [`${ms(capacityPriceMs)} for capacity`] : []),
    ...(stabilityMs > 0 ? [`${ms(stabilityMs)} for moving`] : []),
  ].join(" + ");
  if (!isUsed)
    return `${engine} gets nothing of ${cluster}'s ${name}: ${made} = ${ms(sumMs)}, and elsewhere a request costs ${ms(demandPriceMs)}; it would have to be ${ms(reducedCostMs)} cheaper.`;
  const also =
    faster === null
      ? ""
      : ` At ${faster.engine} such a request would itself be ${ms(faster.byMs)} faster, and make others wait ${ms(faster.inflictedMs)}.`;
  const free =
    priceRangeMs === null
      ? ""
      : ` The engine's price is the lowest of a range: one unit of work fewer saves ${ms(priceRangeMs.oneFewer)}, one more costs ${priceRangeMs.oneMore === null ? "what can't be had" : ms(priceRangeMs.oneMore)}.`;
  const held =
    binds === "pin"
      ? `by an operator's word until ${pinnedUntil}; left alone, a request would cost ${ms(demandPriceMs)}`
      : `the demand price; what holds it there: ${BINDING[binds]}`;
  return `${engine} gets ${percent(weight)} of ${cluster}'s ${name}: ${made} = ${ms(sumMs)}, ${held}.${also}${free}`;
}
