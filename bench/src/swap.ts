import type { LoadGroup } from "./load/group.ts";
import { median } from "./results.ts";
import { swapPauses } from "./swap/pauses.ts";

const ENGINES = 1000;
const CLASSES = 200;

/** How long a thread that serves requests is kept from them while a large snapshot comes in, end to end. */
export const swap: LoadGroup = {
  name: "swap",
  async run(form, print) {
    const figures: Record<string, number> = {};
    for (const threads of [1, 2]) {
      const { swaps, still } = await swapPauses(threads, ENGINES, CLASSES, form === "short" ? 3 : 9);
      const name = `swap/${threads}-threads/${ENGINES}-engines/${CLASSES}-classes`;
      figures[`${name}/longest-pause-ms`] = median(swaps);
      figures[`${name}/without-a-swap-ms`] = median(still);
      const all = (values: readonly number[]): string => values.map((value) => value.toFixed(2)).join(" ");
      print(`${name}: longest pauses, ms: ${all(swaps)}; without a swap: ${all(still)}`);
    }
    return { cases: {}, ratios: {}, figures, missing: [] };
  },
};
