import { describe, expect, it } from "vitest";
import { EventTemplate } from "./event-template.ts";

/** A template of `learned` asked about `event`; both have their text at the first `@…@`. */
function fits(learned: string, event: string): boolean {
  const template = new EventTemplate();
  const bytes = Buffer.from(learned);
  template.learn(bytes, 0, bytes.length, bytes.indexOf("@"), bytes.lastIndexOf("@") + 1);
  return template.fits(Buffer.from(event), 0, Buffer.byteLength(event));
}

const LEARNED = '{"id":"1","delta":{"content":"@a@"},"finish":null}';

describe("an event that is as the one before", () => {
  it.each(["b", " ", "北京😀", '\\"', "\\\\", 'say \\"x\\" \\\\', "\\u00e9", "null}"])(
    "may have the text %j",
    (text) => {
      expect(fits(LEARNED, LEARNED.replace("@a@", text))).toBe(true);
    },
  );

  it.each([
    ["another finish", '{"id":"1","delta":{"content":"b"},"finish":"x"}'],
    ["another id", '{"id":"2","delta":{"content":"b"},"finish":null}'],
    ["no text", '{"id":"1","delta":{"content":""},"finish":null}'],
    ["a member more", '{"id":"1","delta":{"content":"b","x":"y"},"finish":null}'],
    ["an escaped quote at its end", '{"id":"1","delta":{"content":"b\\"},"finish":null}'],
    ["an end before its time", '{"id":"1","delta":{"content":"b"},"finish":null'],
    ["no more than the beginning", '{"id":"1","delta":{"content":"'],
    ["a part of it", '{"id"'],
    ["nothing", ""],
  ])("has not %s", (_name, event) => {
    expect(fits(LEARNED, event)).toBe(false);
  });

  it("is none where nothing was learned, or too much", () => {
    expect(new EventTemplate().fits(Buffer.from("{}"), 0, 2)).toBe(false);
    const long = `{"x":"${"y".repeat(3000)}","t":"@a@"}`;
    expect(fits(long, long)).toBe(false);
  });
});
