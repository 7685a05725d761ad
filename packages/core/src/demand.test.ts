import { describe, expect, it } from "vitest";
import { parseDemandReport } from "./demand.ts";

const good = {
  gateway: "g1",
  cluster: "c",
  seq: 4,
  windowMs: 1000,
  classes: { chat: { offered: 90, work: 90, retries: 1, clientRetries: 0, shed: 0 } },
  engines: {
    a: { attempts: 60, faults: 1, failFactor: 0.98, slowFactor: 1, dead: false, ttftRatio: null, rttMs: 2.5 },
  },
};

describe("a demand report", () => {
  it("is read as it was sent", () => {
    expect(parseDemandReport(good)).toEqual(good);
  });

  it.each([
    ["an unknown key", { ...good, colour: 1 }, "colour", "1"],
    [
      "a negative count",
      { ...good, classes: { chat: { ...good.classes.chat, offered: -1 } } },
      "classes.chat.offered",
      "-1",
    ],
    [
      "half a request",
      { ...good, classes: { chat: { ...good.classes.chat, offered: 0.5 } } },
      "classes.chat.offered",
      "0.5",
    ],
    [
      "more arrivals than a gateway can take",
      { ...good, classes: { chat: { ...good.classes.chat, offered: 1e12 } } },
      "classes.chat.offered",
      "1000000000000",
    ],
    [
      "more work than they can be",
      { ...good, classes: { chat: { ...good.classes.chat, work: 1e300 } } },
      "classes.chat.work",
      "1e+300",
    ],
    ["an endless window", { ...good, windowMs: Number.POSITIVE_INFINITY }, "windowMs", "Infinity"],
    ["a window longer than a gateway's", { ...good, windowMs: 1e300 }, "windowMs", "1e+300"],
    ["a window shorter than a gateway's", { ...good, windowMs: 1e-300 }, "windowMs", "1e-300"],
    ["a window of nothing", { ...good, windowMs: 0 }, "windowMs", "0"],
    [
      "a factor above 1",
      { ...good, engines: { a: { ...good.engines.a, failFactor: 1.5 } } },
      "engines.a.failFactor",
      "1.5",
    ],
    ["no cluster", { ...good, cluster: undefined }, "cluster", undefined],
  ])("is refused for %s", (_what, report, path, value) => {
    expect(() => parseDemandReport(report)).toThrow(
      expect.objectContaining({ code: "bad_demand", problems: [expect.objectContaining({ path, value })] }),
    );
  });

  it.each([[null], [[]], ["text"], [7]])("is refused when it is %j", (data) => {
    expect(() => parseDemandReport(data)).toThrow(expect.objectContaining({ code: "bad_demand" }));
  });
});
