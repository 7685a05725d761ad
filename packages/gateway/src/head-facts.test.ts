import { HEAD, TRIED_MAX } from "@guidevane/selector";
import { describe, expect, it } from "vitest";
import { createHeadFacts, fillHead, readHead } from "./head-facts.ts";

const RULES = { sessionHeaders: ["x-a", "X-B"], trustHeaders: true };

function session(raw: readonly string[]): string | null {
  return readHead(raw, 0, RULES).sessionKey?.toString() ?? null;
}

describe("a session header", () => {
  it("is the first of the list that has text, whatever the order and case in the request", () => {
    expect(session(["X-b", "2", "x-A", "1"])).toBe("1");
    expect(session(["x-a", "  ", "x-b", " 2 "])).toBe("2");
    expect(session(["x-c", "3"])).toBeNull();
  });

  it("counts as its joined text where it is repeated, and is not there where it is empty", () => {
    expect(session(["x-a", "1", "X-A", "2"])).toBe("1, 2");
    expect(session(["x-a", "", "x-a", ""])).toBeNull();
  });
});

describe("headers that need trust", () => {
  const raw = ["x-guidevane-class", "c", "x-guidevane-residency", " eu ", "x-guidevane-tenant", "t"];

  it("are read where they are trusted, and only there", () => {
    const { className, residency, tenant } = readHead(raw, 0, RULES);
    expect([className, residency, tenant?.toString()]).toEqual(["c", "eu", "t"]);
    const distrusted = readHead(raw, 0, { ...RULES, trustHeaders: false });
    expect([distrusted.className, distrusted.residency, distrusted.tenant]).toEqual([null, null, null]);
  });
});

describe("a tenant", () => {
  it("is whose key the client brought, unless a trusted header names another", () => {
    const tenant = (raw: readonly string[], trustHeaders: boolean) =>
      readHead(raw, 0, { ...RULES, trustHeaders }, "of-the-key").tenant?.toString();
    expect(tenant([], false)).toBe("of-the-key");
    expect(tenant(["x-guidevane-tenant", "of-the-header"], true)).toBe("of-the-header");
    expect(tenant(["x-guidevane-tenant", "of-the-header"], false)).toBe("of-the-key");
    expect(tenant(["x-guidevane-tenant", " "], true)).toBe("of-the-key");
  });
});

describe("the facts' memory", () => {
  const moment = (wallMs: number, tried: readonly number[]) => ({ wallMs, tried, placement: false });

  it("holds one request after another, each without a rest of the one before", () => {
    const facts = createHeadFacts();
    const long = readHead(["x-a", "a long session key"], 2, RULES);
    fillHead(facts, long, { classNamed: 3, residency: 2, tenant: 7 }, moment(5500, [9, 8]));
    const { path, classNamed, tenant, sessionKeyBytes, residency, nowS, triedCount, tried } = HEAD;
    const places = [path, classNamed, tenant, sessionKeyBytes, residency, nowS, triedCount, tried, tried + 1];
    expect(places.map((place) => facts.words[place])).toEqual([2, 3, 7, 18, 2, 5, 2, 9, 8]);
    expect(Buffer.from(facts.bytes.subarray(0, 18)).toString()).toBe("a long session key");
    fillHead(facts, readHead([], 0, RULES), { classNamed: 0, residency: 0, tenant: 0 }, moment(6000, []));
    expect(places.slice(0, 7).map((place) => facts.words[place])).toEqual([0, 0, 0, 0, 0, 6, 0]);
  });

  it("takes no more engines tried than it has room for", () => {
    const facts = createHeadFacts();
    const many = Array.from({ length: TRIED_MAX + 5 }, (_, i) => i + 1);
    fillHead(facts, readHead([], 0, RULES), { classNamed: 0, residency: 0, tenant: 0 }, moment(0, many));
    expect(facts.words[HEAD.triedCount]).toBe(TRIED_MAX);
  });
});
