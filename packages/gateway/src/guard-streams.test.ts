import { describe, expect, it } from "vitest";
import { clearStreams, createStreamMemory, SharedStreams } from "./guard-streams.ts";

const ROWS: Readonly<Record<string, number>> = { chat: 0, batch: 1 };

function threads(count: number) {
  const memory = createStreamMemory(count);
  const rowOf = (name: string): number => ROWS[name] ?? Number.POSITIVE_INFINITY;
  return { memory, streams: Array.from({ length: count }, (_, thread) => new SharedStreams(memory, thread, rowOf)) };
}

describe("counts of streams", () => {
  it("are of all threads together, by class and by engine", () => {
    const [one, two] = threads(2).streams;
    one!.add("chat", 1);
    two!.add("chat", 1);
    two!.add("batch", 1);
    two!.addAttempt(7, 1);
    expect(one!.threads).toBe(2);
    expect([one!.held("chat"), one!.held("batch"), one!.all(), one!.attempts(7), one!.attempts(8)]).toEqual([
      2, 1, 3, 1, 0,
    ]);
    two!.add("chat", -1);
    expect([one!.held("chat"), two!.all()]).toEqual([1, 2]);
  });

  it("lose what a thread that died had counted, and nothing else", () => {
    const { memory, streams } = threads(3);
    for (const each of streams) {
      each.add("chat", 1);
      each.addAttempt(0, 1);
    }
    clearStreams(memory, 1);
    expect([streams[0]!.held("chat"), streams[2]!.attempts(0), streams[1]!.all()]).toEqual([2, 2, 2]);
  });

  it("count a class that has no row with the last ones, and out of the same row as in", () => {
    const [one] = threads(1).streams;
    one!.add("unknown", 1);
    expect([one!.held("unknown"), one!.held("chat"), one!.all()]).toEqual([1, 0, 1]);
    one!.add("unknown", -1);
    expect([one!.held("unknown"), one!.all()]).toEqual([0, 0]);
  });
});
