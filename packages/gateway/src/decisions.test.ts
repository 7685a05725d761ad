import { ManualClock, type SnapshotCell } from "@guidevane/core";
import { KEY_SOURCES, STATE } from "@guidevane/selector";
import { describe, expect, it } from "vitest";
import type { Decision } from "./decision.ts";
import type { DecisionDraft } from "./decision-draft.ts";
import { Decisions } from "./decisions.ts";

const clock = new ManualClock();
const create = (entries = 1000) => new Decisions({ cluster: "us-east", clock, entries });

const CELL = {
  engines: ["a", "b"],
  weights: [0.31, 0.69],
  addends: [
    [2, 200, 191.11, 0, 0],
    [60, 200, 162.114, 3.5, -1],
  ],
  shed: 0.1234567,
  priceMs: 60_425.614,
} as unknown as SnapshotCell;

const RULED_OUT = [
  { engine: "c", by: "capability" as const, message: "lacks vision" },
  { engine: "d", by: "out" as const, message: "is out" },
];

const ATTEMPTS: Decision["attempts"] = [
  {
    engine: "a",
    reason: "ejected",
    outcome: "saturated",
    status: 503,
    connectMs: 1.25,
    headMs: 4,
    firstTokenMs: null,
    endMs: 5,
    bytes: 100,
  },
  {
    engine: "b",
    reason: "retry",
    outcome: "success",
    status: 200,
    connectMs: null,
    headMs: 3,
    firstTokenMs: 80.5,
    endMs: 2_000_000,
    bytes: 5e9,
  },
];

/** A request that had everything that a request can have. */
function fill(draft: DecisionDraft): DecisionDraft {
  return Object.assign(draft, {
    stream: true,
    first: true,
    className: "chat",
    classNamed: true,
    model: "m",
    tenant: "ten€nt",
    keySource: KEY_SOURCES.indexOf("prompt"),
    slot: 4095,
    home: "c",
    homeState: STATE.out | 0x8000,
    second: "a",
    ruledOut: { engines: RULED_OUT, entry: 0 },
    version: 42,
    cell: CELL,
    error: null,
    outcome: "success",
    ttftMs: 123.456,
    attempts: [
      ATTEMPTS[0],
      {
        ...ATTEMPTS[1],
        answer: { promptTokens: 512, completionTokens: 0, cachedTokens: null, tokensFrom: "usage" },
      },
    ],
  }) as DecisionDraft;
}

const WANT: Omit<Decision, "id"> = {
  at: new Date(clock.wallMs()).toISOString(),
  cluster: "us-east",
  class: "chat",
  classBy: "header",
  model: "m",
  path: "/v1/chat/completions",
  stream: true,
  tenant: "ten€nt",
  key: { source: "prompt", slot: 4095 },
  home: "c",
  homeState: { state: "out", factor: 0.5 },
  second: "a",
  first: true,
  ruledOut: RULED_OUT,
  snapshot: 42,
  weight: 0.69,
  addends: { networkMs: 60, serviceMs: 200, congestionMs: 162.11, capacityPriceMs: 3.5, stabilityMs: -1 },
  attempts: ATTEMPTS,
  outcome: "success",
  error: null,
  shed: null,
  ttftMs: 123.46,
  promptTokens: 512,
  completionTokens: 0,
  cachedTokens: null,
  tokensFrom: "usage",
};

describe("decisions", () => {
  it("are found by the request's id with all that was gathered, while it runs and after", () => {
    const decisions = create();
    const draft = fill(decisions.begin("r-1", "/v1/chat/completions"));
    draft.outcome = null;
    expect(decisions.find("r-1")).toEqual({ ...WANT, id: "r-1", outcome: null });
    draft.outcome = "success";
    decisions.end(draft);
    expect(decisions.find("r-1")).toEqual({ ...WANT, id: "r-1" });
    expect([decisions.find("r-2"), decisions.find(""), decisions.find("x".repeat(500))]).toEqual([null, null, null]);
  });

  it("of a request that was refused early say what is known", () => {
    const decisions = create();
    const draft = decisions.begin("r-1", "/v1/embeddings");
    draft.outcome = "rejected";
    draft.error = "body_too_large";
    decisions.end(draft);
    expect(decisions.find("r-1")).toMatchObject({
      path: "/v1/embeddings",
      outcome: "rejected",
      error: "body_too_large",
      class: null,
      key: { source: "none", slot: null },
      homeState: null,
      ruledOut: [],
      snapshot: null,
      weight: null,
      addends: null,
      attempts: [],
    });
  });

  it("of a request that was shed say why, and what the plan said of its cell", () => {
    const decisions = create();
    const draft = fill(decisions.begin("r-1", "/"));
    draft.shed = "planned";
    decisions.end(draft);
    expect(decisions.find("r-1")).toEqual({
      ...WANT,
      id: "r-1",
      path: "/",
      shed: { reason: "planned", plannedPart: 0.1234567, priceMs: 60_425.61 },
    });
  });

  it("of an engine outside the cell have weight 0 and no addends", () => {
    const decisions = create();
    const draft = fill(decisions.begin("r-1", "/"));
    draft.attempts = [...draft.attempts, { ...draft.attempts[1]!, engine: "reserve" }];
    decisions.end(draft);
    expect(decisions.find("r-1")).toMatchObject({ weight: 0, addends: null });
  });

  it("of an id that came twice are the last one's", () => {
    const decisions = create();
    const [one, two] = [decisions.begin("r", "/one"), decisions.begin("r", "/two")];
    decisions.end(one);
    expect(decisions.find("r")?.path).toBe("/two");
    decisions.end(two);
    expect(decisions.find("r")?.path).toBe("/two");
    expect(decisions.running).toBe(0);
  });

  it("B170: are kept up to their number, in memory that does not grow, with their lists", () => {
    const decisions = create(2000);
    const { bytes } = decisions;
    const lists = [0, 1].map((n) => ({ engines: [{ ...RULED_OUT[0]!, engine: `list-${n}` }], entry: 0 }));
    const ids = Array.from({ length: 9000 }, (_, i) => `0199-${i}-7fa8-84fe-e1be942d356b`);
    for (const [i, id] of ids.entries()) {
      const draft = fill(decisions.begin(id, "/v1/chat/completions"));
      draft.ruledOut = lists[i % 2]!;
      draft.attempts = draft.attempts.slice(1);
      decisions.end(draft);
    }
    expect(decisions.bytes).toBe(bytes);
    const kept = ids.filter((id) => decisions.find(id) !== null);
    expect(kept).toEqual(ids.slice(-kept.length));
    expect(kept.length).toBeGreaterThanOrEqual(2000);
    // The oldest one in twenty may have lost theirs.
    for (const id of kept.slice(100))
      expect(decisions.find(id)?.ruledOut[0]?.engine).toBe(`list-${ids.indexOf(id) % 2}`);
  });

  it("hold texts of any length and hundreds of engines in a record of bounded size", () => {
    const decisions = create(10);
    for (let i = 0; i < 30; i++) {
      const draft = fill(decisions.begin(`r-${i}`, "/é".repeat(400)));
      const long = "€".repeat(300);
      draft.ruledOut = {
        engines: Array.from({ length: 500 }, () => ({ engine: long, by: "out", message: long })),
        entry: 0,
      };
      Object.assign(draft, { className: long, model: long, tenant: long, home: long, second: long });
      draft.attempts = Array.from({ length: 20 }, () => ({ ...draft.attempts[0]!, engine: long }));
      decisions.end(draft);
      const found = decisions.find(`r-${i}`);
      expect(found?.tenant).toBe("€".repeat(85));
      expect(found?.attempts.length).toBe(12);
      expect(found?.ruledOut.length).toBe(80);
    }
  });
});
