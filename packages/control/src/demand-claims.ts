import type { DemandReport } from "@guidevane/core";

/** Arrivals of a class that any report may have beyond what was known: the first second of a crowd. */
const ANY_ARRIVALS = 1000;
/** Times what was known that a report may say: real crowds grow faster than they are planned for, but from report to report. */
const RISE = 10;
/** Requests/s: more than any gateway takes, at 30 µs of CPU each (`npm run bench -w @guidevane/bench -- request`). */
const MOST_RPS = 1_000_000;
/** What a gateway once had halves in this time. */
const HALF_MS = 60_000;
/** A gateway unheard for so long is forgotten. */
const KEEP_MS = 600_000;

/** What a report says of a class beyond belief. */
export interface Implausible {
  readonly class: string;
  readonly offered: number;
  /** The most that would have been believed, in the report's window. */
  readonly most: number;
}

interface Known {
  heardMs: number;
  /** Highest rate of each class, fading. */
  readonly rps: Map<string, number>;
}

/**
 * How much of a gateway's report is believed. One with a number from a counter gone wrong would have the whole fleet planned
 * for it: a tenfold rise on what the gateway had lately, or on the plan for its whole cluster, is believed at once, and more
 * than that only from report to report, each refused one making room for the next. So a crowd a hundred times as large as
 * all that was known is planned for a second or two late, and one wrong report never. Times are passed in, ms of one clock.
 */
export class DemandClaims {
  readonly #known = new Map<string, Known>();

  /**
   * Takes note of a report's rates.
   *
   * @param plannedRps what the present plan is made for, by class of the report's cluster
   * @returns the first class that is not to be believed; null where the report may count
   */
  refuse(report: DemandReport, plannedRps: (requestClass: string) => number, nowMs: number): Implausible | null {
    const { rps } = this.#fadedTo(nowMs, `${report.cluster}\n${report.gateway}`);
    let refused: Implausible | null = null;
    for (const [name, { offered }] of Object.entries(report.classes)) {
      const knownRps = Math.max(rps.get(name) ?? 0, plannedRps(name));
      const mostRps = Math.min(MOST_RPS, RISE * knownRps);
      const most = Math.floor(ANY_ARRIVALS + (mostRps * report.windowMs) / 1000);
      if (offered > most) refused ??= { class: name, offered, most };
      const believedRps = (Math.min(offered, most) * 1000) / Math.max(report.windowMs, LEAST_WINDOW_MS);
      rps.set(name, Math.max(rps.get(name) ?? 0, believedRps));
    }
    return refused;
  }

  #fadedTo(nowMs: number, gateway: string): Known {
    let known = this.#known.get(gateway);
    if (known === undefined) {
      for (const [key, { heardMs }] of this.#known) if (nowMs - heardMs > KEEP_MS) this.#known.delete(key);
      known = { heardMs: nowMs, rps: new Map() };
      this.#known.set(gateway, known);
    }
    const keeps = 0.5 ** ((nowMs - known.heardMs) / HALF_MS);
    for (const [name, rps] of known.rps) known.rps.set(name, rps * keeps);
    known.heardMs = nowMs;
    return known;
  }
}

/** A rate over less says nothing: a gateway that stops reports the part of a window that it has. */
const LEAST_WINDOW_MS = 1000;
