import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { seededRandom } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { AnswerObserver } from "./observer.ts";
import { BODY_ROWS, STREAM_ROWS, type StreamRow } from "./testing/recorded-answers.ts";

const DATA = process.env.GUIDEVANE_DATA ?? join(import.meta.dirname, "../../../../shared/data");
const hasData = existsSync(join(DATA, "sse"));

const fail = (error: unknown): void => {
  throw error;
};
const observerOf = (type: string) => new AnswerObserver(200, ["content-type", type], fail);

/** What the observer says of a stream that came in these pieces, as a row. */
function rowOf(file: string, bytes: Buffer, cut: () => number): StreamRow {
  const observer = observerOf("text/event-stream; charset=utf-8");
  for (let at = 0; at < bytes.length; ) {
    const end = Math.min(bytes.length, at + cut());
    // By this clock the n-th event comes at n.
    observer.see(bytes.subarray(at, end), observer.events + 1);
    at = end;
  }
  observer.end();
  const facts = observer.facts();
  return [
    file,
    observer.events,
    facts.contentEvents,
    facts.firstContentMs ?? 0,
    facts.promptTokens,
    facts.completionTokens,
    facts.cachedTokens,
    facts.tokensFrom,
    facts.finish,
    observer.whole,
    observer.failedAt,
  ];
}

describe.skipIf(!hasData)(
  `recorded answers${hasData ? "" : " (skipped: no recorded data; set GUIDEVANE_DATA)"}`,
  () => {
    it.each(STREAM_ROWS)("%s is read for what it holds, wherever it is cut", (...row) => {
      const want = row as unknown as StreamRow;
      const bytes = readFileSync(join(DATA, want[0]));
      expect(rowOf(want[0], bytes, () => 1)).toEqual(want);
      const random = seededRandom(bytes.length);
      for (const most of [5, 90, 1500]) {
        const seen = rowOf(want[0], bytes, () => 1 + Math.floor(random() * most));
        // In pieces that hold several events the first content comes with a whole piece.
        expect(most > 90 ? seen.with(3, want[3]) : seen.with(3, seen[3] === 0 ? 0 : want[3])).toEqual(want);
      }
    });

    it.each(STREAM_ROWS)("%s says the same with other line ends and a byte order mark", (...row) => {
      const want = row as unknown as StreamRow;
      const text = readFileSync(join(DATA, want[0]), "utf8");
      for (const end of ["\r\n", "\r"]) {
        const bytes = Buffer.from(`\ufeff${text.replaceAll("\n", end)}`);
        expect(rowOf(want[0], bytes, () => 3)).toEqual(want);
        expect(rowOf(want[0], bytes, () => 1e9).with(3, want[3])).toEqual(want);
      }
    });

    it.each(BODY_ROWS)("%s is read as one document", (file, promptTokens, completionTokens, cachedTokens, finish) => {
      const bytes = readFileSync(join(DATA, file));
      for (const size of [1, 17, 1e9]) {
        const observer = observerOf("application/json");
        for (let at = 0; at < bytes.length; at += size) observer.see(bytes.subarray(at, at + size), 0);
        observer.end();
        expect(observer.terminated).toBe(true);
        expect(observer.facts()).toMatchObject({
          promptTokens,
          completionTokens,
          cachedTokens,
          finish,
          malformedEvents: 0,
        });
      }
    });
  },
);
