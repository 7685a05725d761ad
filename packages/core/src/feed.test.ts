import { describe, expect, it } from "vitest";
import { type FeedEvent, parseFeedEvent, writeFeedEvent } from "./feed.ts";

const none = { value: null, state: "missing", ageMs: null } as const;
const events: readonly FeedEvent[] = [
  { event: "snapshot", data: { tag: "1-42" } },
  {
    event: "signals",
    data: {
      engines: {
        a: { running: { value: 3, state: "fresh", ageMs: 9 }, waiting: none, kvUsage: none, readyReplicas: none },
      },
    },
  },
  { event: "engines", data: { engines: { a: "draining" } } },
  { event: "gateways", data: { gateways: 2 } },
];

describe("an event of the feed", () => {
  it.each(events)("$event comes back from the wire as it was", (sent) => {
    const text = writeFeedEvent(sent);
    const [, name = "", data = ""] = /^event: (.+)\ndata: (.+)\n\n$/.exec(text) ?? [];
    expect(parseFeedEvent(name, data)).toEqual(sent);
  });

  it.each([
    ["a name of a later version", "weather", "{}"],
    ["a name that every object has", "constructor", "{}"],
    ["data that is not JSON", "snapshot", "{"],
    ["data of another shape", "snapshot", '{"tag":1}'],
    ["a state that nobody knows", "engines", '{"engines":{"a":"asleep"}}'],
  ])("is null for %s", (_what, name, data) => {
    expect(parseFeedEvent(name, data)).toBeNull();
  });
});
