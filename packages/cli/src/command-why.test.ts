import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Decision } from "@guidevane/gateway";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runProgram } from "./program.ts";
import { showDecision } from "./why-text.ts";

const ATTEMPT = {
  engine: "engine-b",
  reason: "ejected",
  outcome: "saturated",
  status: 503,
  connectMs: 0.41,
  headMs: 3.2,
  firstTokenMs: null,
  endMs: 3.4,
  bytes: 120,
} as const;

const DECISION: Decision = {
  id: "tour-1",
  at: "2026-11-30T06:00:00.000Z",
  cluster: "b",
  class: "chat",
  classBy: "model",
  model: "demo",
  path: "/v1/chat/completions",
  stream: true,
  tenant: null,
  key: { source: "header", slot: 1234 },
  home: "engine-a",
  homeState: { state: "out", factor: 1 },
  second: "engine-b",
  first: true,
  ruledOut: [{ engine: "engine-a", by: "out", message: "is out" }],
  snapshot: 2,
  weight: 0.2539,
  addends: { networkMs: 60, serviceMs: 200, congestionMs: 1924.22, capacityPriceMs: 0, stabilityMs: 0 },
  attempts: [
    ATTEMPT,
    {
      ...ATTEMPT,
      engine: "engine-c",
      reason: "retry",
      outcome: "success",
      status: 200,
      connectMs: null,
      firstTokenMs: 93.25,
      endMs: 410,
      bytes: 4095,
    },
  ],
  outcome: "success",
  error: null,
  shed: null,
  ttftMs: 98.1,
  promptTokens: 64,
  completionTokens: 16,
  cachedTokens: 0,
  tokensFrom: "usage",
};

const TEXT = `tour-1: POST /v1/chat/completions in cluster b at 2026-11-30T06:00:00.000Z; a stream, a conversation's first request, routed by snapshot 2

class      chat (model demo): the model's first class whose capabilities the request uses and whose residency agrees
key        a session header; slot 1234 of the ring
home       engine-a, which was out (dead, not ready, or taken out); next in its key's order: engine-b
went to    engine-b, since home takes nothing just now; then to engine-c, since another engine had failed before the first byte
ruled out  engine-a: is out
weight     25.39 % of b's chat goes to engine-c by the plan
addends    network 60.00 + service 200.00 + congestion 1924.22 + capacity 0.00 + stability 0.00 = 2184.22 ms: what one more request at engine-c costs the fleet
ended      success; first content after 98.1 ms; 64 prompt tokens (0 cached), 16 completion tokens

attempt  engine    reason   outcome    status  connect ms  head ms  first token ms  end ms  bytes
      1  engine-b  ejected  saturated     503         0.4      3.2               –     3.4    120
      2  engine-c  retry    success       200           –      3.2            93.3   410.0   4095
`;

/** A decision of a request that came to no engine. */
const REFUSED: Decision = {
  ...DECISION,
  stream: false,
  first: false,
  class: null,
  classBy: null,
  model: null,
  key: { source: "none", slot: null },
  home: null,
  homeState: null,
  second: null,
  ruledOut: [],
  snapshot: null,
  weight: null,
  addends: null,
  attempts: [],
  outcome: "rejected",
  error: "body_too_large",
  ttftMs: null,
  promptTokens: null,
  completionTokens: null,
  cachedTokens: null,
  tokensFrom: null,
};

let gateway: Server;
let url = "";
beforeAll(async () => {
  gateway = createServer((request, response) => {
    const known = request.url === "/v1/decisions/tour-1";
    response.writeHead(known ? 200 : 404, { "content-type": "application/json" });
    const id = decodeURIComponent((request.url ?? "").split("/").at(-1)!);
    response.end(
      JSON.stringify(
        known ? DECISION : { error: { code: "decision_not_found", message: `no request "${id}" is remembered here` } },
      ),
    );
  });
  await new Promise<void>((done) => gateway.listen(0, "127.0.0.1", done));
  url = `http://127.0.0.1:${(gateway.address() as AddressInfo).port}`;
});
afterAll(() => {
  gateway.close();
  gateway.closeAllConnections();
});

async function run(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ["", ""];
  const code = await runProgram(["why", ...args], {
    out: (text) => {
      out += text;
    },
    err: (text) => {
      err += text;
    },
  });
  return { code, out, err };
}

describe("guidevane why", () => {
  it("says in words where a request went, and why", async () => {
    expect(await run("tour-1", "--gateway", url)).toEqual({ code: 0, out: TEXT, err: "" });
  });

  it("prints what the gateway says as JSON", async () => {
    const { code, out } = await run("tour-1", "--gateway", url, "--json");
    expect([code, JSON.parse(out)]).toEqual([0, DECISION]);
  });

  it("says what is not known, not reachable, or no request id", async () => {
    expect(await run("r-2", "--gateway", url)).toEqual({
      code: 2,
      out: "",
      err: 'guidevane: no request "r-2" is remembered here (decision_not_found)\n',
    });
    const nobody = await run("tour-1", "--gateway", "http://127.0.0.1:2");
    expect([nobody.code, nobody.err]).toEqual([1, expect.stringContaining("no gateway answers at http://127.0.0.1:2")]);
    expect((await run("a b", "--gateway", url)).code).toBe(2);
    expect((await run("tour-1", "--gateway", "ftp://x")).err).toContain("--gateway: must be an http or https URL");
  });

  it("asks several gateways in turn", async () => {
    expect((await run("tour-1", "--gateway", url, url)).out).toBe(TEXT);
  });

  it("leaves out what a refused request does not have", () => {
    expect(showDecision(REFUSED)).toBe(
      "tour-1: POST /v1/chat/completions in cluster b at 2026-11-30T06:00:00.000Z\n\nended      rejected (body_too_large, said by the gateway)\n",
    );
  });

  it("says of a request that was shed what the plan sheds of its class, and at what price", () => {
    const away = { ...REFUSED, class: "chat", model: "demo", snapshot: 2, outcome: "shed", error: "shed" } as const;
    const said = (shed: Decision["shed"], change: Partial<Decision> = {}) =>
      /^shed +(.*)/m.exec(showDecision({ ...away, shed, ...change }))?.[1];
    expect(said({ reason: "planned", plannedPart: 0.125, priceMs: 60_425.61 })).toBe(
      "planned: the plan can't serve all; the plan sheds 12.50 % of b's chat, of which one more request costs the fleet 60425.61 ms",
    );
    expect(said({ reason: "queue-timeout", plannedPart: 0, priceMs: 241 })).toBe(
      "queue-timeout: no room came while it could wait; the plan sheds nothing of b's chat, of which one more request costs the fleet 241.00 ms",
    );
    const beforeAnyPlan = { reason: "priority", plannedPart: 0, priceMs: 0 } as const;
    expect(said(beforeAnyPlan, { snapshot: 0 })).toBe("priority: the room that is left is for higher priorities");
    expect(said(null)).toBeUndefined();
  });

  it("tells usage that broke off, and none, for what they are", () => {
    const ended = (change: Partial<Decision>) => /ended +(.*)/.exec(showDecision({ ...DECISION, ...change }))?.[1];
    expect(ended({ outcome: "cancelled", tokensFrom: "partial", cachedTokens: null })).toBe(
      "cancelled; first content after 98.1 ms; 64 prompt tokens, 16 completion tokens, so far as it came",
    );
    expect(ended({ tokensFrom: "events", promptTokens: null })).toContain("16 events with content; it told no usage");
    expect(ended({ outcome: null })).toBe("not yet: it runs");
  });
});
