import { describe, expect, it } from "vitest";
import { StreamTail } from "./stream-tail.ts";

const CHUNK = (reason: string) =>
  `data: {"id":"x","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":${reason}}]}\n\n`;

/** The stream seen in pieces of `size` bytes. */
function seen(text: string, size: number): StreamTail {
  const tail = new StreamTail();
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) tail.see(bytes.subarray(at, at + size));
  return tail;
}

describe.each([1, 2, 7, 31, 64, 65, 1000])("a stream seen in pieces of %i bytes", (size) => {
  it("is over after [DONE], with or without the space", () => {
    expect(seen(`${CHUNK("null")}data: [DONE]\n\n`, size).terminated).toBe(true);
    expect(seen(`${CHUNK("null")}data:[DONE]\n\n`, size).terminated).toBe(true);
  });

  it("is over after a finish reason that is not null", () => {
    expect(seen(`${CHUNK("null")}${CHUNK('"stop"')}`, size).terminated).toBe(true);
    expect(seen(`${CHUNK("null")}${CHUNK('"stop"')}${"data: {}\n\n".repeat(40)}`, size).terminated).toBe(true);
  });

  it("is not over before that", () => {
    for (const text of ["", CHUNK("null"), `${CHUNK("null")}${CHUNK(" null")}`, "data: DONE\n\n"])
      expect(seen(text, size).terminated).toBe(false);
  });

  it("failed when one of its events was an error, but not when one of its texts speaks of it", () => {
    expect(seen(`${CHUNK("null")}data: {"error":{}}\n\ndata: [DONE]\n\n`, size).failed).toBe(true);
    const quoted = `data: ${JSON.stringify({ text: 'data: {"error": 1}' })}\n\ndata: [DONE]\n\n`;
    expect(seen(quoted, size).failed).toBe(false);
    expect(seen('data: {"error":null,"x":1}\n\ndata: [DONE]\n\n', size).failed).toBe(false);
  });

  it("ends between events only after an empty line", () => {
    expect(seen(CHUNK("null"), size).betweenEvents).toBe(true);
    expect(seen("data: 1\r\n\r\n", size).betweenEvents).toBe(true);
    expect(seen("data: 1\n", size).betweenEvents).toBe(false);
  });
});
