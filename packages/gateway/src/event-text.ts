import { EventReader } from "./event-reader.ts";

/** Reads a stream of events as text: each one's name (`message` where it has none) and data. Keeps one event at a time. */
export function readEventText(onEvent: (name: string, data: string) => void): EventReader {
  let pieces: Buffer[] = [];
  return new EventReader({
    data: (bytes, start, end) => {
      pieces.push(Buffer.from(bytes.subarray(start, end)));
    },
    event: (name) => {
      const data = Buffer.concat(pieces).toString("utf8");
      pieces = [];
      onEvent(name === "" ? "message" : name, data);
    },
  });
}
