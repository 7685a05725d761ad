import { describe, expect, it } from "vitest";
import { EventTemplate } from "./event-template.ts";

/** A template of `learned`, whose text stands between two `@`. */
function templateOf(learned: string, template = new EventTemplate()): EventTemplate {
  const bytes = Buffer.from(learned);
  template.learn(bytes, 0, bytes.length, bytes.indexOf("@"), bytes.lastIndexOf("@") + 1);
  return template;
}

const LEARNED = 'event: x\ndata: {"id":"1","delta":{"content":"@a@"},"finish":null}\n\n';
const event = (text: string) => Buffer.from(LEARNED.replace("@a@", () => text));

describe("an event that is as the one before", () => {
  it.each(["b", " ", "北京😀", '\\"', "\\\\", 'say \\"x\\" \\\\', "\\u00e9", "null}"])(
    "may have the text %j",
    (text) => {
      const bytes = event(text);
      expect(templateOf(LEARNED).endOf(bytes, 0)).toBe(bytes.length);
    },
  );

  it("may stand behind another one", () => {
    const bytes = Buffer.concat([event("a"), event('b\\"'), Buffer.from("data: cut")]);
    const template = templateOf(LEARNED);
    const first = template.endOf(bytes, 0);
    const second = template.endOf(bytes, first);
    expect([first, second, template.endOf(bytes, second)]).toEqual([event("a").length, bytes.length - 9, -1]);
  });

  it.each([
    ["another finish", event("b").toString().replace("null}", '"x"}')],
    ["another id", event("b").toString().replace('"1"', '"2"')],
    ["another name", event("b").toString().replace("event: x", "event: y")],
    ["no text", event("").toString()],
    ["a member more", event('b","x":"y').toString()],
    ["an escaped quote at its end", event("b\\").toString()],
    ["the end of a line in its text", event("b\rc").toString()],
    ["no empty line", event("b").toString().slice(0, -1)],
    ["another kind of line end", event("b").toString().replaceAll("\n", "\r\n")],
    ["no more than the beginning", 'event: x\ndata: {"id":"1","delta":{"content":"'],
    ["nothing", ""],
  ])("has not %s", (_name, text) => {
    expect(templateOf(LEARNED).endOf(Buffer.from(text), 0)).toBe(-1);
  });

  it("is none where nothing was learned, or too much, or what never came again", () => {
    expect(new EventTemplate().endOf(event("b"), 0)).toBe(-1);
    const long = `data: {"x":"${"y".repeat(3000)}","t":"@a@"}\n\n`;
    expect(templateOf(long).endOf(Buffer.from(long), 0)).toBe(-1);
    const template = new EventTemplate();
    for (let i = 0; i < 20; i++) templateOf(`data: {"n":${i},"t":"@a@"}\n\n`, template);
    expect(template.endOf(Buffer.from('data: {"n":19,"t":"b"}\n\n'), 0)).toBe(-1);
  });
});
