import { STATE } from "@guidevane/selector";
import type { RoutedState } from "./decision.ts";

/** What a router sees first in an engine's state word. */
export function routedStateOf(word: number): RoutedState {
  if ((word & STATE.draining) !== 0) return "draining";
  if ((word & STATE.out) !== 0) return "out";
  if ((word & STATE.outByProbe) !== 0) return "probes-fail";
  return (word & STATE.cooling) !== 0 ? "cooling" : "ready";
}

/** The part of its keys that an engine takes, 0 to 1 in thousandths. */
export function factorOf(word: number): number {
  return Math.round(((word & STATE.factorMask) / STATE.factorMask) * 1000) / 1000;
}
