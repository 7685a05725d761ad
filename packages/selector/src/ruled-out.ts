import {
  CAPABILITIES,
  type ClusterSnapshot,
  type Ineligible,
  ineligibleFor,
  type SnapshotEngine,
} from "@guidevane/core";
import { USE_OF } from "./facts.ts";
import { STATE } from "./shared-state.ts";

/** What a request asked of engines, and which it has been to. */
export interface RequestNeeds {
  /** Bits of `NEED`. */
  readonly needs: number;
  readonly contextTokens: number;
  /** Null where none was asked. */
  readonly residency: string | null;
  readonly tried: ReadonlySet<string>;
}

export interface RuledOut {
  readonly engine: string;
  readonly by: Ineligible["by"] | "tried" | "out" | "draining" | "plan";
  /** For a person: `lacks vision`. */
  readonly message: string;
}

/** What does not change while a snapshot is in use: those ruled out, and the ids of the others, in the snapshot's order. */
export type RuledOutByPlan = readonly (RuledOut | string)[];

/**
 * Which engines of the snapshot could not take a request of this class, and what ruled each out: the first thing that
 * does, in the order that the router asks. For the message of a 503 and for the log; the router itself needs no words.
 */
export function ruledOutByPlan(
  snapshot: ClusterSnapshot,
  className: string,
  request: Omit<RequestNeeds, "tried">,
): RuledOutByPlan {
  const spec = snapshot.classes[className];
  if (spec === undefined) return [];
  const cell = snapshot.cells.find((each) => each.class === className && each.cluster === snapshot.cluster);
  const candidates = new Set([
    ...(cell?.engines.filter((_, i) => cell.weights[i]! > 0) ?? []),
    ...(cell?.reserves.map(({ engine }) => engine) ?? []),
  ]);
  return Object.entries(snapshot.engines).map(([engine, definition]) => {
    const why =
      ineligibleFor(spec, definition, definition.rttMs) ??
      unfit(definition, request) ??
      (candidates.has(engine) ? null : { by: "plan" as const, message: "the plan gives it none of this class" });
    return why === null ? engine : { engine, by: why.by, message: why.message };
  });
}

/**
 * Those, and the ones that were tried or take nothing just now: of one that the plan gives nothing this is why.
 *
 * @param stateOf the state word of an engine
 */
export function ruledOutNow(
  byPlan: RuledOutByPlan,
  tried: ReadonlySet<string>,
  stateOf: (engine: string) => number,
): RuledOut[] {
  const found: RuledOut[] = [];
  for (const each of byPlan) {
    if (typeof each !== "string" && each.by !== "plan") {
      found.push(each);
      continue;
    }
    const engine = typeof each === "string" ? each : each.engine;
    const why = away(tried.has(engine), stateOf(engine));
    if (why !== null) found.push({ engine, ...why });
    else if (typeof each !== "string") found.push(each);
  }
  return found;
}

function unfit(engine: SnapshotEngine, request: Omit<RequestNeeds, "tried">): Omit<RuledOut, "engine"> | null {
  const { capabilities, maxContextTokens, residency } = engine;
  const lacking =
    capabilities && CAPABILITIES.find((each) => (request.needs & USE_OF[each]) !== 0 && !capabilities.includes(each));
  if (lacking) return { by: "capability", message: `lacks ${lacking}` };
  if (maxContextTokens !== null && request.contextTokens * 2 > Math.floor(maxContextTokens) * 3)
    return { by: "context", message: `holds ${maxContextTokens} of about ${request.contextTokens} tokens` };
  if (request.residency !== null && residency !== request.residency)
    return { by: "residency", message: `residency ${residency ?? "unset"} is not ${request.residency}` };
  return null;
}

function away(tried: boolean, state: number): Omit<RuledOut, "engine"> | null {
  if (tried) return { by: "tried", message: "was tried" };
  if ((state & STATE.draining) !== 0) return { by: "draining", message: "is draining" };
  if ((state & STATE.out) !== 0) return { by: "out", message: "is out" };
  return null;
}
