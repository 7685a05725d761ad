import type { LoadGroup } from "./load/group.ts";
import { median } from "./results.ts";
import { type Pause, swapPauses } from "./swap/pauses.ts";

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
      const middle = (pauses: readonly Pause[], of: "ms" | "yardstickMs"): number =>
        median(pauses.map((each) => each[of]));
      figures[`${name}/longest-pause-ms`] = middle(swaps, "ms");
      figures[`${name}/without-a-swap-ms`] = middle(still, "ms");
      figures[`${name}/yardstick-ms`] = middle(swaps, "yardstickMs");
      print(`${name}: longest pauses, ms (of it the collector's; of a thread with nothing to do)`);
      print(`  with a swap:    ${swaps.map(show).join("  ")}`);
      print(`  without a swap: ${still.map(show).join("  ")}`);
    }
    return { cases: {}, ratios: {}, figures, missing: [] };
  },
};

function show({ ms, gcMs, gcKind, yardstickMs }: Pause): string {
  return `${ms.toFixed(2)} (${gcMs.toFixed(2)} ${gcKind}; ${yardstickMs.toFixed(2)})`;
}
