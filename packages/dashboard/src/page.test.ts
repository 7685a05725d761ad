import { createHash } from "node:crypto";
import { Script } from "node:vm";
import { describe, expect, it } from "vitest";
import { DASHBOARD_CSP, DASHBOARD_HTML } from "./page.ts";

/** Text between a tag and its end, as a browser takes it. */
function inline(tag: string): string {
  return new RegExp(`<${tag}>([\\s\\S]*?)</${tag}>`).exec(DASHBOARD_HTML)![1]!;
}

describe("the page", () => {
  it.each(["style", "script"])("allows its own %s by hash, and nothing else", (tag) => {
    const hash = createHash("sha256").update(inline(tag)).digest("base64");
    expect(DASHBOARD_CSP).toContain(`${tag}-src 'sha256-${hash}'`);
    expect(DASHBOARD_CSP).toContain("default-src 'none'");
    expect(DASHBOARD_HTML.match(new RegExp(`<${tag}`, "g"))).toHaveLength(1);
  });

  it("has a script that parses", () => {
    expect(() => new Script(inline("script"))).not.toThrow();
  });

  it("asks nothing of other places and has no handler or style in an attribute", () => {
    expect(DASHBOARD_HTML).not.toMatch(/(?:https?:)?\/\/[a-z]/i);
    expect(DASHBOARD_HTML).not.toMatch(/<[^>]+\s(?:on\w+|style|src|href)=/i);
  });

  it("B181: puts text in as text: no call that would read it as markup", () => {
    expect(inline("script")).not.toMatch(/innerHTML|outerHTML|insertAdjacent|document\.write|eval|Function\(/);
  });
});
