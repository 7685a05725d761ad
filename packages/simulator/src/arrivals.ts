import type { Clock, Random } from "@guidevane/core";

/**
 * Calls `arrive` at the instants of a Poisson stream of `rateRps`, open loop: the next arrival does not wait for any
 * answer, and one that comes late (a busy process, coarse timers) is made up for, never dropped. `lateMs` is by how much.
 * Returns the way to stop.
 */
export function startArrivals(
  rateRps: number,
  clock: Clock,
  random: Random,
  arrive: (lateMs: number) => void,
): () => void {
  if (!(rateRps > 0)) return () => {};
  // 1 − random() is in (0, 1]: its logarithm is finite.
  const gapMs = () => (-Math.log(1 - random()) * 1000) / rateRps;
  let nextMs = clock.nowMs() + gapMs();
  let cancel = () => {};
  const wake = () => {
    const nowMs = clock.nowMs();
    while (nextMs <= nowMs) {
      arrive(nowMs - nextMs);
      nextMs += gapMs();
    }
    schedule();
  };
  const schedule = () => {
    cancel = clock.after(Math.max(0, nextMs - clock.nowMs()), wake);
  };
  schedule();
  return () => cancel();
}
