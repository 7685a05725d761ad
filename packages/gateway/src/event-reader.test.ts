import { describe, expect, it } from "vitest";
import { EventReader } from "./event-reader.ts";
import { readEventText } from "./event-text.ts";

function read(bytes: Buffer, size: number): [string, string][] {
  const events: [string, string][] = [];
  const reader = readEventText((name, data) => events.push([name, data]));
  for (let at = 0; at < bytes.length; at += size) reader.push(bytes.subarray(at, at + size));
  return events;
}

describe.each([1, 2, 3, 7, 1000])("an event stream read in pieces of %i bytes", (size) => {
  it("is split into its events", () => {
    const text =
      ": hello\n\nevent: a\ndata: é🦊\n\nevent: b\ndata:1\ndata: 2\nid: 7\nretry: 5\n\ndata: last\n\nevent: none\n\nevent: cut\ndata: x\n";
    expect(read(Buffer.from(text), size)).toEqual([
      ["a", "é🦊"],
      ["b", "1\n2"],
      ["message", "last"],
    ]);
  });

  it.each([
    ["LF", "\n"],
    ["CRLF", "\r\n"],
    ["CR", "\r"],
  ])("takes %s for the end of a line", (_name, end) => {
    const text = ["event: a", "data: 1", "", "data: 2", "data: 3", "", ""].join(end);
    expect(read(Buffer.from(text), size)).toEqual([
      ["a", "1"],
      ["message", "2\n3"],
    ]);
  });

  it("takes line ends of all kinds in one stream", () => {
    expect(read(Buffer.from("data: 1\n\r\ndata: 2\r\rdata: 3\r\n\ndata: 4\r\n\r\n"), size)).toEqual(
      ["1", "2", "3", "4"].map((data) => ["message", data]),
    );
  });

  it("cuts one space after the colon, and no more", () => {
    expect(read(Buffer.from("data:  two\n\ndata:none\n\ndata: trailing \n\ndata\n\ndata:\n\n"), size)).toEqual(
      [" two", "none", "trailing ", "", ""].map((data) => ["message", data]),
    );
  });

  it("passes over a byte order mark at the beginning, and there alone", () => {
    expect(read(Buffer.from("\ufeffdata: 1\n\n\ufeffdata: 2\n\n"), size)).toEqual([["message", "1"]]);
    expect(read(Buffer.from([0xef, 0xbb, 0x64, 0x61, 0x74, 0x61, 0x3a, 0x31, 0x0a, 0x0a]), size)).toEqual([]);
  });

  it("knows no field but data and event", () => {
    expect(read(Buffer.from("datas: 1\ndat: 2\nevents: x\n: data: 3\n data: 4\nDATA: 5\n\n"), size)).toEqual([]);
  });
});

describe("an event reader", () => {
  it("says whether an event may be written in between", () => {
    const between = (text: string) => {
      const reader = readEventText(() => undefined);
      reader.push(Buffer.from(text));
      return reader.betweenEvents;
    };
    for (const text of ["", "data: 1\n\n", "data: 1\r\r", "data: 1\r\n\r\n", "data: 1\n\n: ping\n"])
      expect([text, between(text)]).toEqual([text, true]);
    for (const text of ["data: 1\n", "data: 1", "da", "event: a\n", "data: 1\n\ndata: "])
      expect([text, between(text)]).toEqual([text, false]);
  });

  it("passes a large event on piece by piece", () => {
    let [largest, whole, events] = [0, 0, 0];
    const reader = new EventReader({
      data: (_bytes, start, end) => {
        largest = Math.max(largest, end - start);
        whole += end - start;
      },
      event: () => {
        events += 1;
      },
    });
    reader.push(Buffer.from("data: "));
    const piece = Buffer.alloc(65_536, "x");
    for (let i = 0; i < 192; i++) reader.push(piece);
    reader.push(Buffer.from("\n\n"));
    expect([largest, whole, events]).toEqual([65_536, 192 * 65_536, 1]);
  });
});
