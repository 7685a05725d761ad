import type { Choose } from "../guidevane/parts.ts";
import type { PolicyDefinition, PolicyWorld } from "../policy.ts";
import { guidevaneWith } from "./guidevane.ts";

/**
 * A yardstick, not a way to route: Guidevane's plan, weights, bound and guard rails, and a gateway that knows what every
 * cache holds at this moment. Of the engines with a share that are not over the bound it takes the one with most of the
 * prompt's blocks. Where several have the most, Guidevane's own choice if it is one of them, else the one with the fewest
 * streams for its part; where none has any, Guidevane's own choice.
 */
export const cacheOracle: PolicyDefinition = {
  ...guidevaneWith("cache-oracle", { memory: false, choose: (world) => mostCached(world, 0) }),
  does: "Guidevane's weights and bound, knowing what every cache holds",
};

/**
 * The same, but a conversation of whose prompt no engine has a fifth begins anew, and what begins goes to the engine with
 * the fewest streams for its part: a few blocks that many prompts share don't draw it to where they happen to lie.
 */
export const evenCacheOracle: PolicyDefinition = {
  ...guidevaneWith("even-cache-oracle", { memory: false, choose: (world) => mostCached(world, 0.2) }),
  does: "Guidevane's weights and bound, knowing what every cache holds; what begins goes to the least busy",
};

/** @param least part of the prompt's blocks that counts as having it */
function mostCached({ cachedBlocks, workload }: PolicyWorld, least: number): Choose {
  return (request, { routed, fine, hasFewer }) => {
    const fewest = (engines: readonly number[]) => engines.reduce((best, each) => (hasFewer(each, best) ? each : best));
    const blocks = fine.map((engine) => cachedBlocks(engine, request));
    const most = Math.max(0, ...blocks);
    const isNew = most === 0 || most < least * workload.promptBlocks[request]!;
    if (isNew) return least > 0 && fine.length > 0 ? fewest(fine) : routed;
    const best = fine.filter((_, at) => blocks[at] === most);
    return best.includes(routed) ? routed : fewest(best);
  };
}
