import { type EngineSignals, type FeedEvent, writeFeedEvent } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { feedParts } from "./feed-parts.ts";

const signal = (value: number) => ({ value, state: "fresh" as const, ageMs: 900 });

function signalsOf(names: readonly string[]): FeedEvent {
  const engines = names.map((name, at): [string, EngineSignals] => [
    name,
    { running: signal(at), waiting: signal(0), kvUsage: signal(0.25), readyReplicas: signal(1) },
  ]);
  return { event: "signals", data: { engines: Object.fromEntries(engines) } };
}

const dataOf = (event: FeedEvent): string => writeFeedEvent(event).split("\ndata: ")[1]!.trimEnd();
const partsOf = (event: FeedEvent): FeedEvent[] => [...feedParts(event.event, dataOf(event))];

describe("an event of the feed", () => {
  it.each([1000, 1024, 129])("with the signals of %i engines comes in parts that say the same", (count) => {
    const event = signalsOf(Array.from({ length: count }, (_, at) => `e{${at}}"\\\\é`));
    const parts = partsOf(event);
    const engines = parts.map(({ data }) => (data as { engines: object }).engines);
    expect(Object.assign({}, ...engines)).toEqual((event.data as { engines: object }).engines);
    expect(parts).toHaveLength(Math.ceil(count / 64));
    for (const part of engines) expect(Object.keys(part).length).toBeLessThanOrEqual(64);
  });

  it("that is small comes whole", () => {
    for (const event of [
      signalsOf(["a", "b"]),
      signalsOf([]),
      { event: "gateways", data: { gateways: 3 } } as const,
      { event: "engines", data: { engines: { a: "out" } } } as const,
    ])
      expect(partsOf(event)).toEqual([event]);
  });

  it("that can't be read, or breaks off, says what can be read of it", () => {
    expect([...feedParts("signals", "{")]).toEqual([]);
    expect([...feedParts("weather", "{}")]).toEqual([]);
    const data = dataOf(signalsOf(Array.from({ length: 200 }, (_, at) => `e${at}`)));
    for (const cutAt of [data.length - 1, data.length - 2, 20_000]) {
      const known = [...feedParts("signals", data.slice(0, cutAt))];
      for (const part of known) expect(Object.keys((part.data as { engines: object }).engines)).toHaveLength(64);
    }
  });
});
