import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** An answer as it came over the wire. */
export interface RawAnswer {
  readonly status: number;
  readonly statusText: string;
  readonly headers: readonly (readonly [string, string])[];
  /** Chunks joined, or the bytes of the declared length. */
  readonly body: Buffer;
}

/** A client on a raw socket: it sends exactly the bytes that it is told to. */
export class RawClient {
  readonly socket: Socket;
  readonly closed: Promise<void>;
  #bytes: Buffer = Buffer.alloc(0);
  #ended = false;
  #wake: (() => void)[] = [];

  private constructor(socket: Socket) {
    this.socket = socket;
    this.closed = new Promise((resolve) => socket.once("close", () => resolve()));
    socket.on("data", (chunk: Buffer) => {
      this.#bytes = Buffer.concat([this.#bytes, chunk]);
      this.#notify();
    });
    for (const event of ["end", "close", "error"])
      socket.on(event, () => {
        this.#ended = true;
        this.#notify();
      });
  }

  static async connect(url: string): Promise<RawClient> {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    await once(socket, "connect");
    return new RawClient(socket);
  }

  send(bytes: string | Buffer): void {
    this.socket.write(bytes);
  }

  post(path: string, body: string | Buffer, headers: Readonly<Record<string, string>> = {}): void {
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    this.send(
      Buffer.concat([
        Buffer.from(`POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-length: ${Buffer.byteLength(body)}\r\n`),
        Buffer.from(`${lines.join("")}\r\n`, "latin1"),
        Buffer.from(body as string),
      ]),
    );
  }

  /** Everything received and not yet taken. */
  get received(): Buffer {
    return this.#bytes;
  }

  /** Waits until what was received contains `text`. */
  async until(text: string): Promise<void> {
    while (!this.#bytes.includes(text)) await this.#more(`${JSON.stringify(text)} in ${this.#bytes.toString()}`);
  }

  /** The next whole answer; rejects when the connection ends before it does. */
  async answer(): Promise<RawAnswer> {
    while (!this.#bytes.includes("\r\n\r\n")) await this.#more("a head");
    const end = this.#bytes.indexOf("\r\n\r\n");
    const [statusLine = "", ...lines] = this.#bytes.toString("latin1", 0, end).split("\r\n");
    const headers = lines.map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon), line.slice(colon + 1).trim()] as const;
    });
    const status = Number(statusLine.split(" ")[1]);
    const statusText = statusLine.split(" ").slice(2).join(" ");
    this.#bytes = this.#bytes.subarray(end + 4);
    if (status < 200 || status === 204 || status === 304) return { status, statusText, headers, body: Buffer.alloc(0) };
    const length = headers.find(([name]) => name.toLowerCase() === "content-length")?.[1];
    const body = length === undefined ? await this.#chunks() : await this.#take(Number(length));
    return { status, statusText, headers, body };
  }

  close(): void {
    this.socket.destroy();
  }

  async #chunks(): Promise<Buffer> {
    const parts: Buffer[] = [];
    for (;;) {
      while (!this.#bytes.includes("\r\n")) await this.#more("a chunk");
      const line = this.#bytes.indexOf("\r\n");
      const size = Number.parseInt(this.#bytes.toString("latin1", 0, line), 16);
      this.#bytes = this.#bytes.subarray(line + 2);
      const data = await this.#take(size + 2);
      if (size === 0) return Buffer.concat(parts);
      parts.push(data.subarray(0, size));
    }
  }

  async #take(length: number): Promise<Buffer> {
    while (this.#bytes.length < length) await this.#more(`${length} bytes`);
    const taken = Buffer.from(this.#bytes.subarray(0, length));
    this.#bytes = this.#bytes.subarray(length);
    return taken;
  }

  #more(what: string): Promise<void> {
    if (this.#ended) return Promise.reject(new Error(`the connection ended before ${what}`));
    return new Promise((resolve) => this.#wake.push(resolve));
  }

  #notify(): void {
    const wake = this.#wake;
    this.#wake = [];
    for (const each of wake) each();
  }
}

export function headerIn(answer: RawAnswer, name: string): string | undefined {
  return answer.headers.find(([each]) => each.toLowerCase() === name)?.[1];
}
