import { seededRandom } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { EntryLog } from "./entry-log.ts";

function put(log: EntryLog, text: string, tag: number | null): number {
  const at = log.open();
  return log.close(log.buffer.write(text, at, "latin1"), tag);
}

describe("a log of entries", () => {
  it("keeps the youngest that fit, whole, and finds them by tag and by number", () => {
    const options = { entries: 40, bytes: 1000, entryBytes: 60 };
    const log = new EntryLog(options);
    const random = seededRandom(3);
    const all: { text: string; tag: number; number: number }[] = [];
    const size = log.bytes;
    for (let i = 0; i < 3000; i++) {
      const text = `${i}:${"x".repeat(Math.floor(random() * 54))}`;
      const tag = Math.floor(random() * 7) * 64;
      all.push({ text, tag, number: put(log, text, tag) });
      const kept = all.slice(-log.count);
      expect(kept.length).toBeLessThanOrEqual(options.entries);
      // Never less than what fits beside one entry of room and the rest of a lap.
      expect(log.count).toBeGreaterThanOrEqual(Math.min(i + 1, 14));
      for (const each of i % 50 === 0 ? kept : kept.slice(0, 2)) {
        expect(log.entry(each.number)?.toString("latin1")).toBe(each.text);
        expect(log.find(each.tag, (entry) => entry.toString("latin1") === each.text)).not.toBeNull();
      }
      const lost = all.at(-log.count - 1);
      if (lost !== undefined) {
        expect(log.entry(lost.number)).toBeNull();
        expect(log.find(lost.tag, (entry) => entry.toString("latin1") === lost.text)).toBeNull();
      }
    }
    expect(log.bytes).toBe(size);
  });

  it("gives the youngest of one tag, and leaves those without a tag alone", () => {
    const log = new EntryLog({ entries: 8, bytes: 100, entryBytes: 10 });
    expect(log.find(0, () => true)).toBeNull();
    put(log, "a1", 5);
    put(log, "a2", 5);
    const plain = put(log, "list", null);
    expect(log.find(5, (entry) => entry[0] === 0x61)?.toString()).toBe("a2");
    expect(log.find(5, (entry) => entry.toString() === "list")).toBeNull();
    expect([log.entry(plain)?.toString(), log.ageOf(plain)]).toEqual(["list", 0]);
  });
});
