import { z } from "zod";
import { parseBy } from "./document.ts";

/** Every cell is taken to have this much demand at least, so that weights exist before anything arrives. */
export const DEMAND_FLOOR_RPS = 0.001;

const counts = z.int().nonnegative();
/** More than any gateway takes in its longest window: planned for, such a number would shed a whole fleet. */
const MOST_ARRIVALS = 10_000_000;
const MOST_WORK = 1e9;
const notNegative = z.number().nonnegative().finite();

/** What a gateway tells the control plane each second: the body of `POST /v1/demand`. Counts are of the window. */
export const demandReportSchema = z.strictObject({
  gateway: z.string().min(1),
  cluster: z.string().min(1),
  /** Rises by one each report of this gateway process. */
  seq: z.int().nonnegative(),
  /** About a second. A gateway whose machine slept sends one too long to say anything about now. */
  windowMs: z.number().min(1).max(60_000),
  /** It is stopping: what it still serves counts, and it is none of its cluster's live gateways any more. */
  leaving: z.boolean().optional(),
  classes: z.record(
    z.string(),
    z.strictObject({
      /** Every arrival, client retries included. */
      offered: counts.max(MOST_ARRIVALS),
      /** Units of work offered. */
      work: notNegative.max(MOST_WORK),
      /** Retries that the gateway made. */
      retries: counts,
      /** Arrivals that said they are a client's own retry. */
      clientRetries: counts,
      shed: counts,
    }),
  ),
  engines: z.record(
    z.string(),
    z.strictObject({
      attempts: counts,
      faults: counts,
      failFactor: z.number().min(0).max(1),
      slowFactor: z.number().min(0).max(1),
      dead: z.boolean(),
      /** Observed TTFT ÷ the profile's; null before the first answer. */
      ttftRatio: notNegative.nullable(),
      /** Least connect time seen; null before the first connection. */
      rttMs: notNegative.nullable(),
    }),
  ),
});

export type DemandReport = z.infer<typeof demandReportSchema>;

/** @throws GuidevaneError `bad_demand`, naming each path and value */
export function parseDemandReport(data: unknown): DemandReport {
  return parseBy(demandReportSchema, data, "demand report", "bad_demand");
}
