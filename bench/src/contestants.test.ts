import { describe, expect, it } from "vitest";
import { groups } from "./groups.ts";

describe.each(groups)("the contestants of $name", (group) => {
  it("give the right answer, each the same, under names of their own", async () => {
    const { cases, truths, close } = await group.open("short");
    try {
      expect(cases.length).toBeGreaterThan(0);
      expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length);
      const answers = new Map(truths);
      for (const each of cases) {
        const answer = await each.answer();
        // A question without a truth of its own is settled by its first contestant; the others must agree.
        if (!answers.has(each.question)) answers.set(each.question, structuredClone(answer));
        expect(answer, each.name).toEqual(answers.get(each.question));
        expect(answer, each.name).not.toBeUndefined();
      }
    } finally {
      await close();
    }
  });
});
