import { describe, expect, it } from "vitest";
import { GuidevaneError } from "./errors.ts";
import { type Network, parseRttCsv, rttBetween } from "./network.ts";

function network(csv: string): Network {
  return { defaultRttMs: 100, rttMs: parseRttCsv(csv, "rtt.csv") };
}

describe("an RTT file", () => {
  it("is looked up in both directions", () => {
    const found = network("from,to,rtt_ms\na,b,62.5\n");
    expect(rttBetween(found, { name: "x", region: "a" }, "b")).toEqual({ rttMs: 62.5, known: true });
    expect(rttBetween(found, { name: "x", region: "b" }, "a")).toEqual({ rttMs: 62.5, known: true });
  });

  it("prefers a row of the way asked for over one of the way back", () => {
    const found = network("from,to,rtt_ms\na,b,1\nb,a,2\n");
    expect(rttBetween(found, { name: "x", region: "a" }, "b").rttMs).toBe(1);
    expect(rttBetween(found, { name: "x", region: "b" }, "a").rttMs).toBe(2);
  });

  it("lets a cluster's own row win over its region's", () => {
    const found = network("from,to,rtt_ms\nr1,r2,80\nc1,r2,70\n");
    expect(rttBetween(found, { name: "c1", region: "r1" }, "r2").rttMs).toBe(70);
    expect(rttBetween(found, { name: "c2", region: "r1" }, "r2").rttMs).toBe(80);
  });

  it("is 0 inside a region and the default elsewhere, the latter said to be a guess", () => {
    const found = network("from,to,rtt_ms\n");
    expect(rttBetween(found, { name: "c", region: "r" }, "r")).toEqual({ rttMs: 0, known: true });
    expect(rttBetween(found, { name: "c", region: "r" }, "q")).toEqual({ rttMs: 100, known: false });
  });

  it("takes columns in any order, comments, empty lines, and Windows line ends", () => {
    const found = network("# measured\r\nrtt_ms,to,from,n\r\n\r\n5,b,a,17\r\n");
    expect(rttBetween(found, { name: "x", region: "a" }, "b").rttMs).toBe(5);
  });

  it.each([
    ["a header without rtt_ms", "from,to,ms\n", "rtt.csv:1", '"from,to,ms"'],
    ["a negative time", "from,to,rtt_ms\na,b,-1\n", "rtt.csv:2", '"a,b,-1"'],
    ["a time that is no number", "from,to,rtt_ms\na,b,x\n", "rtt.csv:2", '"a,b,x"'],
    ["a missing time", "from,to,rtt_ms\na,b,\n", "rtt.csv:2", '"a,b,"'],
    ["a missing name", "from,to,rtt_ms\na,,1\n", "rtt.csv:2", '"a,,1"'],
  ])("is refused for %s, with its line", (_what, csv, path, value) => {
    try {
      parseRttCsv(csv, "rtt.csv");
    } catch (error) {
      expect(error).toMatchObject({ code: "bad_network", problems: [{ path, value }] });
      expect(GuidevaneError.is(error)).toBe(true);
      return;
    }
    throw new Error("it was taken");
  });
});
