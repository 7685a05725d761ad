import { StringDecoder } from "node:string_decoder";

/** Splits a server-sent event stream (WHATWG HTML §9.2) into events; `id` and `retry` are not used here. */
export class EventReader {
  readonly #onEvent: (event: string, data: string) => void;
  readonly #decoder = new StringDecoder("utf8");
  #rest = "";
  #event = "";
  #data: string[] = [];

  constructor(onEvent: (event: string, data: string) => void) {
    this.#onEvent = onEvent;
  }

  push(chunk: Buffer): void {
    this.#rest += this.#decoder.write(chunk);
    let from = 0;
    for (let at = this.#rest.indexOf("\n"); at >= 0; at = this.#rest.indexOf("\n", from)) {
      const line = this.#rest.slice(from, at).replace(/\r$/, "");
      from = at + 1;
      this.#line(line);
    }
    this.#rest = this.#rest.slice(from);
  }

  #line(line: string): void {
    if (line === "") {
      if (this.#data.length > 0) this.#onEvent(this.#event === "" ? "message" : this.#event, this.#data.join("\n"));
      this.#event = "";
      this.#data = [];
      return;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.#event = value;
    else if (field === "data") this.#data.push(value);
  }
}
