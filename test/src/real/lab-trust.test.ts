import { describe, expect, it } from "vitest";
import { sweepTrust } from "../../../scripts/real/lab-trust.ts";

const HEAD = "engine,workload,run,start_ms,prompt_tokens,output_tokens,ttft_ms,e2e_ms";
const level = (run: string, e2eMs: (request: number) => number, count = 800): string[] =>
  Array.from({ length: count }, (_, at) => `e,100x16,${run},${10 * at},100,16,5,${e2eMs(at)}`);

describe("the trust in a sweep", () => {
  it("is that of the mean of as many requests where each is by itself", () => {
    // ±50 % in turn by a pattern that no part of the level sees more of: the mean of a part is the mean.
    const said = sweepTrust([HEAD, ...level("steady", (at) => (at % 2 === 0 ? 50 : 150))].join("\n"));
    expect(said).toBe(
      "means of E2E of the sweep's 1 levels are uncertain by ± 0 % in the median, ± 0 % at worst (two standard errors)",
    );
  });

  it("is low where requests are late together, however many there are", () => {
    // Queues of a hundred requests, in three of eight parts.
    const late = (at: number) => ([1, 4, 6].includes(Math.floor(at / 100)) ? 400 : 100);
    const said = sweepTrust([HEAD, ...level("steady", () => 100), ...level("queues", late)].join("\n"));
    // Parts of 400 and 100 ms, mean 212.5: s = 155.3 ms, ÷ √8 = 54.9 ms, twice that 51.7 %.
    expect(said.split("\n")[0]).toBe("doubtful: queues 100x16: E2E 213 ms ± 52 % (800 requests)");
    expect(said).not.toContain("doubtful: steady");
  });
});
