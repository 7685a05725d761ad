import { describe, expect, it } from "vitest";
import { type AttemptEnd, afterAttempt, type Circumstances, outcomeOfStatus } from "./after-attempt.ts";

const FIRST: Circumstances = { attempts: 1, attemptsMax: 2, freshTried: false, leavesTrace: false };
const answer = (status: number, more: { servesModel?: boolean; retryAfterMs?: number } = {}): AttemptEnd => ({
  kind: "answer",
  status,
  servesModel: more.servesModel ?? true,
  retryAfterMs: more.retryAfterMs ?? null,
});

describe("after an attempt", () => {
  it.each([429, 502, 503, 504, 404])("that ended with %i, another engine is tried", (status) => {
    expect(afterAttempt(answer(status), FIRST, 0).retry).toBe("other");
  });

  it.each([200, 400, 401, 403, 408, 409, 413, 422, 500, 501, 505])("that ended with %i, none is", (status) => {
    expect(afterAttempt(answer(status), FIRST, 0)).toEqual({ retry: false });
  });

  it("a 404 is tried elsewhere only for a model that the engine should have", () => {
    expect(afterAttempt(answer(404, { servesModel: false }), FIRST, 0)).toEqual({ retry: false });
  });

  it.each(["connect", "closed"] as const)("that ended by %s, another engine is tried", (kind) => {
    expect(afterAttempt({ kind }, FIRST, 0).retry).toBe("other");
  });

  it.each(["timer", "malformed"] as const)("that ended by %s, none is", (kind) => {
    expect(afterAttempt({ kind }, FIRST, 0)).toEqual({ retry: false });
  });

  it("over a connection that died unused, the same engine is asked once more, whatever the count", () => {
    const seen = { ...FIRST, attemptsMax: 1, leavesTrace: true };
    expect(afterAttempt({ kind: "stale-connection" }, seen, 0)).toEqual({ retry: "fresh" });
    expect(afterAttempt({ kind: "stale-connection" }, { ...seen, freshTried: true }, 0)).toEqual({ retry: false });
  });

  it("never makes more attempts than allowed", () => {
    for (const attemptsMax of [1, 2, 8])
      for (let attempts = 1; attempts <= attemptsMax + 1; attempts++)
        expect(afterAttempt(answer(503), { ...FIRST, attempts, attemptsMax }, 0).retry).toBe(
          attempts < attemptsMax ? "other" : false,
        );
  });

  it("counts no attempt that reached no engine, up to three of them", () => {
    const unreached = (count: number) => ({ ...FIRST, attempts: 1 + count, unreached: count });
    for (const count of [0, 1, 2, 3])
      expect(afterAttempt({ kind: "connect" }, unreached(count), 0).retry).toBe("other");
    expect(afterAttempt({ kind: "connect" }, unreached(4), 0).retry).toBe(false);
    // One that died with its engine, and then engines that are dead already.
    const afterDeath = (count: number) => ({ ...FIRST, attempts: 2 + count, unreached: count });
    for (const count of [0, 1, 2]) expect(afterAttempt({ kind: "connect" }, afterDeath(count), 0).retry).toBe("other");
    expect(afterAttempt({ kind: "connect" }, afterDeath(3), 0).retry).toBe(false);
    expect(afterAttempt({ kind: "closed" }, afterDeath(1), 0).retry).toBe(false);
  });

  it("retries nothing where one attempt is all that is allowed", () => {
    expect(afterAttempt({ kind: "connect" }, { ...FIRST, attemptsMax: 1 }, 0)).toEqual({ retry: false });
  });

  it("repeats what is stored only where it can't have begun", () => {
    const seen = { ...FIRST, leavesTrace: true };
    expect(afterAttempt({ kind: "connect" }, seen, 0).retry).toBe("other");
    expect(afterAttempt(answer(503), seen, 0).retry).toBe("other");
    expect(afterAttempt({ kind: "closed" }, seen, 0)).toEqual({ retry: false });
  });

  it("waits 50 to 250 ms before the only engine there is, longer only for a Retry-After under a second", () => {
    const alone = (end: AttemptEnd, draw: number) => {
      const next = afterAttempt(end, FIRST, draw);
      return next.retry === "other" ? next.aloneMs : undefined;
    };
    expect([alone(answer(503), 0), alone(answer(503), 0.5), alone(answer(503), 1)]).toEqual([50, 150, 250]);
    expect(alone(answer(503, { retryAfterMs: 999 }), 0)).toBe(999);
    expect(alone(answer(503, { retryAfterMs: 1000 }), 0)).toBeNull();
    expect(alone(answer(503, { retryAfterMs: 0 }), 0)).toBe(50);
  });

  it("a status has one outcome", () => {
    const outcomes = [200, 204, 302, 307, 400, 404, 408, 422, 429, 500, 502, 503, 504].map((status) =>
      outcomeOfStatus(status, false),
    );
    expect(outcomes).toEqual([
      "success",
      "success",
      "fault",
      "fault",
      "client-error",
      "client-error",
      "fault",
      "client-error",
      "saturated",
      "fault",
      "fault",
      "saturated",
      "fault",
    ]);
    expect(outcomeOfStatus(404, true)).toBe("fault");
  });

  it("costs no budget where no connection came about, and only there: no engine has worked for it", () => {
    const free = (end: AttemptEnd): boolean | undefined => {
      const next = afterAttempt(end, FIRST, 0.5);
      return next.retry === "other" ? next.free : undefined;
    };
    expect(free({ kind: "connect" })).toBe(true);
    expect(free({ kind: "closed" })).toBe(false);
    expect(free({ kind: "answer", status: 503, servesModel: true, retryAfterMs: null })).toBe(false);
  });
});
