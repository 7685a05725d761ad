import { type Clock, systemClock } from "@guidevane/core";

/** Where a thread's clock has its zero, in ms of the machine's monotonic clock: each thread's begins with the thread. */
export function threadZeroMs(): number {
  return Number(process.hrtime.bigint()) / 1e6 - systemClock.nowMs();
}

/** The clock of the thread whose zero this is: threads that write times into shared memory must mean the same by them. */
export function clockOfThread(zeroMs: number): Clock {
  const aheadMs = threadZeroMs() - zeroMs;
  return { ...systemClock, nowMs: () => systemClock.nowMs() + aheadMs };
}
