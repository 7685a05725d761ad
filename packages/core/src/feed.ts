import { z } from "zod";
import { ADMIN_STATES, SIGNAL_STATES } from "./words.ts";

const signal = z.object({ value: z.number().nullable(), state: z.enum(SIGNAL_STATES), ageMs: z.number().nullable() });

/** Events of the control plane's feed (`GET /v1/feed`, server-sent events), the data of each one line of JSON. */
export const feedEventSchemas = {
  /** A snapshot was published. */
  snapshot: z.object({ tag: z.string() }),
  /** What the collector knows of each engine. */
  signals: z.object({
    engines: z.record(
      z.string(),
      z.object({ running: signal, waiting: signal, kvUsage: signal, readyReplicas: signal }),
    ),
  }),
  /** What the operator said of each engine that is not simply `active`. */
  engines: z.object({ engines: z.record(z.string(), z.enum(ADMIN_STATES)) }),
  /** Live gateways of the cluster. */
  gateways: z.object({ gateways: z.int().nonnegative() }),
} as const;

export type FeedEventName = keyof typeof feedEventSchemas;

/** One event, by its name. */
export type FeedEvent = {
  [Name in FeedEventName]: { readonly event: Name; readonly data: z.infer<(typeof feedEventSchemas)[Name]> };
}[FeedEventName];

/** Text of one event as it goes over the wire. */
export function writeFeedEvent({ event, data }: FeedEvent): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** An event by its name and data line, or null for one that this version does not know or can't read. */
export function parseFeedEvent(event: string, data: string): FeedEvent | null {
  if (!Object.hasOwn(feedEventSchemas, event)) return null;
  try {
    const parsed = feedEventSchemas[event as FeedEventName].safeParse(JSON.parse(data));
    return parsed.success ? ({ event, data: parsed.data } as FeedEvent) : null;
  } catch {
    return null;
  }
}
