import { describe, expect, it } from "vitest";
import { EventReader } from "./event-reader.ts";

function read(text: string, size: number): [string, string][] {
  const events: [string, string][] = [];
  const reader = new EventReader((event, data) => events.push([event, data]));
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) reader.push(bytes.subarray(at, at + size));
  return events;
}

describe("an event stream", () => {
  it.each([1, 3, 1000])("is split into its events, read in pieces of %i bytes", (size) => {
    const text =
      ": hello\n\nevent: a\ndata: é🦊\n\nevent: b\r\ndata:1\r\ndata: 2\r\nid: 7\r\n\r\ndata: last\n\nevent: none\n\nevent: cut\ndata: x\n";
    expect(read(text, size)).toEqual([
      ["a", "é🦊"],
      ["b", "1\n2"],
      ["message", "last"],
    ]);
  });
});
