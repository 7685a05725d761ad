import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";

/** One request as it came over the wire, and the socket to answer on, byte by byte. */
export interface EngineRequestSeen {
  readonly requestLine: string;
  /** Names and values as sent, in order. */
  readonly headers: readonly (readonly [string, string])[];
  readonly body: Buffer;
  readonly socket: Socket;
  /** Resolves when the gateway has closed this connection. */
  readonly closed: Promise<void>;
}

/**
 * An engine on a raw socket that does what its script says. `/health` is answered 200 unless `health` says otherwise, and
 * is not counted among the requests.
 */
export class ScriptedEngine {
  readonly url: string;
  readonly requests: EngineRequestSeen[] = [];
  connections = 0;
  #waiting: ((request: EngineRequestSeen) => void)[] = [];
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server, port: number) {
    this.#server = server;
    this.url = `http://127.0.0.1:${port}`;
  }

  /** @param script null = tests answer themselves, from `next()` */
  static async start(
    script: ((request: EngineRequestSeen) => void) | null = null,
    options: { readonly port?: number; readonly health?: () => number } = {},
  ): Promise<ScriptedEngine> {
    const server = createServer({ allowHalfOpen: false });
    server.listen(options.port ?? 0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("no port");
    const engine = new ScriptedEngine(server, address.port);
    server.on("connection", (socket) => engine.#serve(socket, script, options.health ?? (() => 200)));
    return engine;
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  /** The next request that arrives. */
  next(): Promise<EngineRequestSeen> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Takes no new connection and leaves the open ones as they are, as a server does whose core was killed. */
  closePort(): void {
    if (this.#server.listening) this.#server.close();
  }

  /** Closes the port and every connection, as a killed process does. */
  async kill(): Promise<void> {
    this.closePort();
    // A socket whose other side is gone can't be reset any more.
    for (const socket of this.#sockets) socket.readyState === "open" ? socket.resetAndDestroy() : socket.destroy();
    await new Promise((resolve) => setImmediate(resolve));
  }

  #serve(socket: Socket, script: ((request: EngineRequestSeen) => void) | null, health: () => number): void {
    this.#sockets.add(socket);
    let counted = false;
    const closed = new Promise<void>((resolve) => {
      socket.once("close", () => {
        this.#sockets.delete(socket);
        resolve();
      });
    });
    socket.on("error", () => socket.destroy());
    let bytes = Buffer.alloc(0);
    socket.on("data", (chunk) => {
      bytes = Buffer.concat([bytes, chunk]);
      for (;;) {
        const end = bytes.indexOf("\r\n\r\n");
        if (end < 0) return;
        const [requestLine = "", ...lines] = bytes.toString("latin1", 0, end).split("\r\n");
        const headers = lines.map((line) => {
          const colon = line.indexOf(":");
          return [line.slice(0, colon), line.slice(colon + 1).trim()] as const;
        });
        const length = Number(headers.find(([name]) => name.toLowerCase() === "content-length")?.[1] ?? 0);
        if (bytes.length < end + 4 + length) return;
        const body = Buffer.from(bytes.subarray(end + 4, end + 4 + length));
        bytes = bytes.subarray(end + 4 + length);
        if (requestLine.startsWith("GET /health ")) {
          socket.write(`HTTP/1.1 ${health()} X\r\ncontent-length: 0\r\n\r\n`);
          continue;
        }
        if (!counted) {
          counted = true;
          this.connections += 1;
        }
        const request = { requestLine, headers, body, socket, closed };
        this.requests.push(request);
        script?.(request);
        this.#waiting.shift()?.(request);
      }
    });
  }
}

/** A plain JSON answer. */
export function jsonAnswer(body: string, status = 200, headers = ""): string {
  return `HTTP/1.1 ${status} Status\r\ncontent-type: application/json\r\n${headers}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

export const STREAM_HEAD =
  "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";

export function chunked(bytes: string | Buffer): Buffer {
  const data = Buffer.from(bytes as string);
  return Buffer.concat([Buffer.from(`${data.length.toString(16)}\r\n`), data, Buffer.from("\r\n")]);
}

export const LAST_CHUNK = "0\r\n\r\n";
