import { describe, expect, it } from "vitest";
import type { DriveReport } from "./generator.ts";
import { findings, type Rounds } from "./group.ts";
import { judge, type Measured, summarise } from "./rounds.ts";
import { table } from "./table.ts";

const S = 1e9;
const report = (front: number, stub: number, own: number, busy: readonly number[]): DriveReport => ({
  elapsedNs: S,
  requests: 1000,
  errors: 0,
  error: null,
  events: 0,
  opened: 0,
  open: 64,
  firstByteNs: null,
  eventNs: null,
  lateNs: null,
  processes: [front, stub].map((part, at) => ({ pid: at + 1, cpuNs: part * S, idleBytes: 0, endBytes: 0 })),
  ownCpuNs: own * S,
  coresBusyNs: busy.map((part) => part * S),
});
const cores = { front: [0], rest: [1] };

describe("what others took of the cores", () => {
  it("is what no process of ours used", () => {
    const got = judge(report(0.8, 0.3, 0.2, [0.9, 0.7]), cores);
    expect(got.othersOnFront).toBeCloseTo(0.1);
    expect(got.othersOnRest).toBeCloseTo(0.2);
    expect(got.disturbed).toBe(false);
  });

  it.each([
    ["the front's core, over 15 %", [0.96, 0.5], true],
    ["the other ones, over 30 %", [0.8, 0.9], true],
    ["less than our own processes used, as clocks of 10 ms may say", [0.7, 0.4], false],
  ])("disturbs where it is of %s", (_what, busy, disturbed) => {
    expect(judge(report(0.8, 0.3, 0.2, busy), cores).disturbed).toBe(disturbed);
  });

  it("is judged over all cores where nothing has one of its own", () => {
    expect(judge(report(0.5, 0.3, 0.2, [1, 0.2]), null).othersOnFront).toBeCloseTo(0.1);
  });

  it("is judged over the cores that the front and its load share, where they do", () => {
    const shared = { front: [0, 1], rest: [0, 1] };
    expect(judge(report(0.9, 0.4, 0.3, [1, 0.8, 1]), shared)).toMatchObject({ othersOnFront: 0.1, othersOnRest: 0.1 });
  });
});

const round = (frontCpuNs: number, disturbed = false): Measured => ({
  report: report(0, 0, 0, [0, 0]),
  frontCpuNs,
  othersOnFront: 0,
  othersOnRest: 0,
  disturbed,
});
const value = ({ frontCpuNs }: Measured) => frontCpuNs;

describe("the summary of rounds", () => {
  it("leaves out the disturbed ones where three quiet ones remain", () => {
    const rounds = [round(10), round(900, true), round(12), round(11), round(800, true)];
    expect(summarise(rounds, value)).toEqual({ medianNs: 11, spreadNs: 1, rounds: 5, disturbed: 2 });
  });

  it("takes all where fewer were quiet, and says how many were not", () => {
    const rounds = [round(10), round(30, true), round(20, true)];
    expect(summarise(rounds, value)).toEqual({ medianNs: 20, spreadNs: 10, rounds: 3, disturbed: 2 });
  });

  it("is shown beside its ratio to the yardstick", () => {
    const reading = { name: "request/1-KB", value };
    const measured: Rounds = new Map([
      ["request/1-KB/nginx", [{ got: round(10_000), reading }]],
      ["request/1-KB/guidevane", [{ got: round(25_000, true), reading }]],
    ]);
    const found = findings(measured);
    expect(found.ratios).toEqual({ "request/1-KB/guidevane-over-nginx": 2.5 });
    const lines = table({ ...found, figures: { "stream/memory": 12.3456 }, missing: ["smg is not here"] });
    expect(lines).toEqual([
      "not measured: smg is not here",
      "",
      "request/1-KB",
      "  nginx             10.00 µs  ± 0.0 ns",
      "  guidevane         25.00 µs  ± 0.0 ns      2.50 × nginx    1 of 1 rounds disturbed by others",
      "",
      "stream/memory: 12.3",
    ]);
  });
});
