import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { BatchingEngine } from "./batching-engine.ts";
import type { EngineParameters } from "./engine-parameters.ts";

const DATA = process.env.GUIDEVANE_DATA ?? join(import.meta.dirname, "../../../../../shared/data");
const file = join(DATA, "profiles/b200_multiturn_requests.csv.gz");
const hasData = existsSync(file);

/** A step that reads a chunk of a prompt takes so much longer. */
const READING_MS = 50;

/**
 * vLLM, Llama-3.3-70B FP4 on one B200, multi-turn chat in a closed loop (InferenceX, Apache-2.0). The step times are those
 * measured at 16 to 128 users and go on by their last slope; 690,000 tokens are what 128 users filled 56 % of. Nothing is
 * fitted to the runs at 256 and 512, where the memory is full.
 */
const B200: EngineParameters = (() => {
  const measured = [
    [0, 10.2],
    [16, 17.5],
    [32, 24.8],
    [64, 40.2],
    [128, 50.1],
    [512, 110],
  ] as const;
  const stepMs = Float64Array.from({ length: 513 }, (_, running) => {
    const right = measured.findIndex(([at]) => at >= running) || 1;
    const [[x0, y0], [x1, y1]] = [measured[right - 1]!, measured[right]!];
    return y0 + ((y1 - y0) * (running - x0)) / (x1 - x0);
  });
  return {
    maxRunning: 512,
    stepMs,
    mixedStepMs: stepMs.map((ms) => ms + READING_MS),
    prefillFactor: new Float64Array(513).fill(1),
    overheadMs: 80,
    prefill: { fixedMs: 5, msPerTok: 0.0425, leastMs: 5 },
    blockTokens: 64,
    kvBlocks: Math.floor(690_000 / 64),
    work: { prefillPerKtok: 1, decodePerKtok: 1 },
  };
})();

interface Turn {
  readonly promptTokens: number;
  readonly outputTokens: number;
}

const title = `the engine beside the log of a real one${hasData ? "" : " (skipped: no recorded data; set GUIDEVANE_DATA)"}`;
describe.skipIf(!hasData)(title, () => {
  const conversations = hasData ? readConversations(file, "tp1_c128") : [];

  it("has its knee in TTFT, and loses its prefix hits, between 128 and 256 users, as the real one did", () => {
    const at = (users: number) => closedLoop(conversations, users);
    const [c64, c128, c256, c512] = [at(64), at(128), at(256), at(512)];
    // Measured means: 154, 208, 5,001 and 57,584 ms; hit shares 0.88, 0.87, 0.10, 0.03.
    expect(c64.ttftMs).toBeLessThan(300);
    expect(c128.ttftMs).toBeLessThan(300);
    expect(c256.ttftMs).toBeGreaterThan(2_000);
    expect(c256.ttftMs).toBeLessThan(15_000);
    expect(c512.ttftMs).toBeGreaterThan(30_000);
    expect(c64.hitShare).toBeGreaterThan(0.8);
    expect(c128.hitShare).toBeGreaterThan(0.8);
    expect(c256.hitShare).toBeLessThan(0.35);
    expect(c512.hitShare).toBeLessThan(0.15);
  });

  it("decodes at the measured pace below the knee", () => {
    expect(Math.abs(closedLoop(conversations, 64).tbotMs / 40.2 - 1)).toBeLessThan(0.1);
  });
});

/** So many users, each with one conversation after another, the next turn as soon as the answer is there. */
function closedLoop(conversations: readonly (readonly Turn[])[], users: number) {
  const { blockTokens } = B200;
  const longest = 2048;
  const ids = Int32Array.from({ length: conversations.length * longest }, (_, index) => index);
  const engine = new BatchingEngine(B200);
  const place: { conversation: number; turn: number }[] = [];
  const sentMs: number[] = [];
  const firstMs: number[] = [];
  const due: { atMs: number; user: number }[] = [];
  let next = 0;
  const sums = { ttftMs: 0, tbotMs: 0, cached: 0, prompt: 0, count: 0 };
  engine.tell({
    began: (user, cachedTokens) => {
      sums.cached += cachedTokens;
      sums.prompt += turnOf(user).promptTokens;
    },
    firstToken: (user, atMs) => {
      firstMs[user] = atMs;
    },
    finished: (user, atMs) => {
      sums.ttftMs += firstMs[user]! - sentMs[user]!;
      sums.tbotMs += (atMs - firstMs[user]!) / turnOf(user).outputTokens;
      sums.count += 1;
      due.push({ atMs, user });
    },
  });
  const turnOf = (user: number): Turn => conversations[place[user]!.conversation]![place[user]!.turn]!;
  const send = (user: number, nowMs: number): void => {
    const { conversation } = place[user]!;
    const { promptTokens, outputTokens } = turnOf(user);
    sentMs[user] = nowMs;
    engine.take(nowMs, user, {
      ids,
      promptTokens,
      outputTokens,
      from: conversation * longest,
      promptBlocks: Math.floor(promptTokens / blockTokens),
      afterBlocks: Math.floor((promptTokens + outputTokens) / blockTokens),
    });
  };
  const goOn = (user: number, nowMs: number): void => {
    const at = place[user];
    if (at !== undefined && at.turn + 1 < conversations[at.conversation]!.length) at.turn += 1;
    else if (next < conversations.length) place[user] = { conversation: next++, turn: 0 };
    else return;
    send(user, nowMs);
  };
  for (let user = 0; user < users; user++) goOn(user, 0);
  for (;;) {
    due.sort((a, b) => b.atMs - a.atMs);
    const client = due.at(-1);
    const engineMs = engine.nextMs();
    if (client !== undefined && client.atMs <= engineMs) {
      due.pop();
      goOn(client.user, client.atMs);
    } else if (engineMs < Number.POSITIVE_INFINITY) engine.run(engineMs);
    else break;
  }
  return {
    ttftMs: sums.ttftMs / sums.count,
    tbotMs: sums.tbotMs / sums.count,
    hitShare: sums.cached / sums.prompt,
  };
}

function readConversations(path: string, run: string): Turn[][] {
  const [head, ...lines] = gunzipSync(readFileSync(path)).toString("utf8").trim().split("\n");
  const column = (name: string): number => head!.split(",").indexOf(name);
  const [runAt, idAt, turnAt] = [column("run"), column("conversation"), column("turn")];
  const [promptAt, outputAt] = [column("input_tokens"), column("output_tokens")];
  const byId = new Map<string, { turn: number; promptTokens: number; outputTokens: number }[]>();
  for (const line of lines) {
    const cells = line.split(",");
    if (cells[runAt] !== run) continue;
    const list = byId.get(cells[idAt]!) ?? [];
    byId.set(cells[idAt]!, list);
    const [turn, promptTokens, outputTokens] = [turnAt, promptAt, outputAt].map((at) => Number(cells[at]));
    list.push({ turn: turn!, promptTokens: Math.max(1, promptTokens!), outputTokens: outputTokens! });
  }
  return [...byId.values()].map((turns) => turns.sort((a, b) => a.turn - b.turn));
}
