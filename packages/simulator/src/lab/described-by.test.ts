import { expect, it } from "vitest";
import { describedBy } from "./described-by.ts";
import { twoRegions } from "./lab.fixture.ts";
import { readTrace } from "./traces/index.ts";

it("describes a class by what its requests bring that no cache has", async () => {
  const fleet = await twoRegions;
  const workload = readTrace("t_s,prompt_tokens,output_tokens,session\n0,512,256,a\n10,1024,256,a\n20,512,256,b\n", {
    name: "trace",
    origins: [{ cluster: "west", part: 1, shiftHours: 0 }],
    requestClass: "chat",
    seed: 1,
    model: null,
    scale: 1,
    size: { promptTokens: 1, outputTokens: 1 },
  });
  const described = describedBy(fleet, workload);
  // The second prompt begins with the first and its answer: 768 of its 1,024 tokens.
  const chat = described.classes.get("chat")!;
  expect(chat.promptTokens).toBeCloseTo((512 + 256 + 512) / 3, 9);
  expect(chat.outputTokens).toBe(256);
  expect(chat.work).toBeCloseTo((0.9765625 * chat.promptTokens + 3.90625 * 256) / 1000, 9);
  expect(described.demandRps.get("west")!.get("chat")).toBeCloseTo(3 / 20, 9);
  expect(described.demandRps.get("east")).toBeUndefined();
});
