import { ManualClock } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { Admission, type AdmissionLimits, type Admitted, type Waiting } from "./admission.ts";
import type { AdmissionClass } from "./occupancy.ts";

const classOf = (name: string, priority: number, streams: number): AdmissionClass => ({
  name,
  model: name,
  priority,
  streamLimit: 1e6,
  work: 1,
  streamWps: 1,
  engineLimit: streams,
});

function start(classes: readonly AdmissionClass[], limits: Partial<AdmissionLimits> = {}) {
  const clock = new ManualClock();
  const all = { maxStreams: 1000, queue: 0, queueMs: 1000, ...limits };
  const admission = new Admission(clock, all);
  admission.adopt(classes, all);
  return { clock, admission };
}

/** What became of those that waited, in the order in which it became so. */
function followed(waiting: Readonly<Record<string, Admitted | Waiting>>): string[] {
  const seen: string[] = [];
  for (const [name, each] of Object.entries(waiting)) {
    if (each.kind !== "waiting") throw new Error(`${name} does not wait: ${JSON.stringify(each)}`);
    void each.turn.then((turn) => seen.push(`${name} ${turn.kind === "shed" ? turn.reason : turn.kind}`));
  }
  return seen;
}

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("admission", () => {
  it("B155: never lets in more than the limit, and after all have left as many as at first", () => {
    const { clock, admission } = start([classOf("chat", 0, 10)]);
    let [inFlight, most] = [0, 0];
    for (let i = 0; i < 20 * 300; i++) {
      clock.advance(50);
      if (admission.ask("chat", null).kind !== "admitted") continue;
      inFlight += 1;
      most = Math.max(most, inFlight);
      clock.after(90_000, () => {
        inFlight -= 1;
        admission.leave("chat");
      });
    }
    clock.advance(90_000);
    expect([most, inFlight]).toEqual([10, 0]);
    const again = Array.from({ length: 12 }, () => admission.ask("chat", null).kind);
    expect(again.filter((kind) => kind === "admitted")).toHaveLength(10);
  });

  it("sends away at once where no queue is configured", () => {
    const { admission } = start([classOf("chat", 0, 1)]);
    expect([admission.ask("chat", null), admission.ask("chat", null)]).toEqual([
      { kind: "admitted" },
      { kind: "shed", reason: "engine-limit" },
    ]);
  });

  it("lets those wait that fit into the queue: first come, first served", async () => {
    const { admission } = start([classOf("chat", 0, 1)], { queue: 2 });
    admission.ask("chat", null);
    const seen = followed({ one: admission.ask("chat", null), two: admission.ask("chat", null) });
    expect([admission.depth("chat"), admission.ask("chat", null)]).toEqual([2, { kind: "shed", reason: "queue-full" }]);
    for (let i = 0; i < 2; i++) {
      admission.leave("chat");
      await settle();
    }
    expect(seen).toEqual(["one admitted", "two admitted"]);
    expect([admission.depth("chat"), admission.occupancy.held("chat")]).toEqual([0, 1]);
  });

  it("lets nobody overtake: who comes while others wait goes behind them", () => {
    const { admission } = start([classOf("chat", 0, 2)], { queue: 5 });
    admission.ask("chat", null);
    admission.ask("chat", null);
    const waiting = admission.ask("chat", null);
    expect(waiting.kind).toBe("waiting");
    admission.leave("chat");
    expect(admission.ask("chat", null).kind).toBe("waiting");
  });

  it("puts higher priorities first, and in a full queue in the place of the last of the lowest", async () => {
    const classes = [classOf("low", 0, 2), classOf("high", 5, 2)].map((each) => ({ ...each, model: "m" }));
    const { admission } = start(classes, { queue: 2 });
    while (admission.ask("high", null).kind === "admitted");
    const held = admission.occupancy.held("high");
    admission.adopt(classes, { maxStreams: 1000, queue: 3, queueMs: 1000 });
    const [a, b, c] = [admission.ask("low", null), admission.ask("low", null), admission.ask("high", null)];
    const seen = followed({ a, b, c });
    await settle();
    expect(seen).toEqual(["b queue-full"]);
    for (let i = 0; i < held + 2; i++) {
      admission.leave("high");
      await settle();
    }
    expect(seen.slice(1, 2)).toEqual(["c admitted"]);
  });

  it("ends a wait at its limit, or at the client's deadline where that is sooner", async () => {
    const { clock, admission } = start([classOf("chat", 0, 1)], { queue: 5 });
    admission.ask("chat", null);
    const seen = followed({ limit: admission.ask("chat", null), deadline: admission.ask("chat", 300) });
    clock.advance(299);
    await settle();
    expect(seen).toEqual([]);
    clock.advance(1);
    await settle();
    expect(seen).toEqual(["deadline queue-timeout"]);
    clock.advance(700);
    await settle();
    expect(seen).toEqual(["deadline queue-timeout", "limit queue-timeout"]);
    expect(admission.ask("chat", clock.nowMs())).toEqual({ kind: "shed", reason: "queue-timeout" });
    expect(admission.waiting).toBe(0);
  });

  it("forgets a client that is gone at once: its place is free and its turn never comes", async () => {
    const { admission } = start([classOf("chat", 0, 1)], { queue: 1 });
    admission.ask("chat", null);
    const gone = admission.ask("chat", null) as Waiting;
    const seen = followed({ gone });
    gone.leave();
    const next = admission.ask("chat", null);
    const more = followed({ next });
    admission.leave("chat");
    await settle();
    expect([seen, more]).toEqual([[], ["next admitted"]]);
  });

  it("sees room that others made, another plan among them", async () => {
    const { clock, admission } = start([classOf("chat", 0, 1)], { queue: 5, queueMs: 10_000 });
    admission.ask("chat", null);
    const seen = followed({ one: admission.ask("chat", null) });
    admission.adopt([classOf("chat", 0, 2)], { maxStreams: 1000, queue: 5, queueMs: 10_000 });
    await settle();
    expect(seen).toEqual(["one admitted"]);
    const two = followed({ two: admission.ask("chat", null) });
    admission.occupancy.left("chat");
    clock.advance(50);
    await settle();
    expect(two).toEqual(["two admitted"]);
  });
});
