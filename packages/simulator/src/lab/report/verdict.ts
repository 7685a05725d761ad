import type { PolicyFigures } from "./figures.ts";

/** A policy that leaves more of its requests without an answer does not carry the load. */
const LOST_PART = 0.01;
/** Differences below are called level. */
const LEVEL = 0.01;

/** One paragraph that says who did best and by how much, from the figures alone. */
export function verdictOf(all: readonly PolicyFigures[]): string {
  const carried = all.filter((each) => each.e2e !== null && lostPart(each) <= LOST_PART);
  if (carried.length === 0)
    return `No policy answers 99 % of these requests; the most is ${show(100 * Math.max(...all.map((each) => 1 - lostPart(each))), 1)} %.`;
  const measures = [
    { name: "mean time to the last token", of: (each: PolicyFigures) => each.e2e!.meanMs },
    { name: "p99 of it", of: (each: PolicyFigures) => each.e2e!.p99Ms },
    { name: "p99 to the first token", of: (each: PolicyFigures) => each.ttft!.p99Ms },
  ];
  const ours = carried.find(({ policy }) => policy === "guidevane");
  const sentences = measures.map(({ name, of }) => sentence(name, carried, ours, of));
  sentences.push(goodSentence(carried, ours));
  const fell = all.filter((each) => !carried.includes(each)).map(({ policy }) => policy);
  if (fell.length > 0) sentences.push(`More than 1 % of the requests had no answer with ${list(fell)}.`);
  return sentences.join(" ");
}

function lostPart({ shedPart, failedPart, unansweredPart }: PolicyFigures): number {
  return shedPart + failedPart + unansweredPart;
}

function sentence(
  name: string,
  carried: readonly PolicyFigures[],
  ours: PolicyFigures | undefined,
  of: (each: PolicyFigures) => number,
): string {
  const order = [...carried].sort((a, b) => of(a) - of(b));
  const best = order[0]!;
  const start = `${name[0]!.toUpperCase()}${name.slice(1)}: `;
  if (carried.length === 1) return `${start}${best.policy} has ${ms(of(best))}.`;
  if (ours === undefined) return `${start}${best.policy} is best with ${ms(of(best))}.`;
  const others = order.filter((each) => each !== ours);
  const next = others[0]!;
  const ratio = of(ours) / of(next) - 1;
  if (Math.abs(ratio) < LEVEL) return `${start}guidevane ${ms(of(ours))}, level with ${next.policy} (${ms(of(next))}).`;
  if (ratio < 0)
    return `${start}guidevane is best with ${ms(of(ours))}, ${percent(-ratio)} below ${next.policy} (${ms(of(next))}).`;
  const ahead = others.filter((each) => of(each) < of(ours) * (1 - LEVEL)).map(({ policy }) => policy);
  return `${start}${next.policy} is best with ${ms(of(next))}; guidevane has ${ms(of(ours))}, ${percent(ratio)} more, behind ${list(ahead)}.`;
}

function goodSentence(carried: readonly PolicyFigures[], ours: PolicyFigures | undefined): string {
  const best = [...carried].sort((a, b) => b.goodPart - a.goodPart)[0]!;
  const first = `Within the objectives: ${best.policy} ${show(100 * best.goodPart, 1)} %`;
  return ours === undefined || ours === best ? `${first}.` : `${first}, guidevane ${show(100 * ours.goodPart, 1)} %.`;
}

function list(names: readonly string[]): string {
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

function ms(value: number): string {
  return value >= 10_000 ? `${show(value / 1000, 1)} s` : `${show(value, 0)} ms`;
}

function percent(part: number): string {
  return `${show(100 * part, part < 0.1 ? 1 : 0)} %`;
}

function show(value: number, digits: number): string {
  return value.toFixed(digits);
}
