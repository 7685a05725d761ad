import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { seededRandom } from "@guidevane/core";
import { answerBytes, mutate } from "./inputs.ts";
import { readRequests, type StrictMessage } from "./strict-http.ts";

/** A request that is answered as it should be. */
export const PLAIN: Buffer = Buffer.from('{"model":"m","messages":[]}');

/** An engine that reads strictly and answers oddly. */
export class FuzzEngine {
  readonly url: string;
  /** What arrived, for whom it was sent. */
  readonly seen: StrictMessage[] = [];
  /** What no engine may get. */
  readonly complaints: string[] = [];
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** The request that each is at. */
  readonly #latest = new WeakMap<Socket, StrictMessage>();
  readonly #seed: number;

  private constructor(server: Server, seed: number) {
    this.#server = server;
    this.#seed = seed;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on("connection", (socket) => this.#serve(socket));
  }

  static async start(seed: number): Promise<FuzzEngine> {
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new FuzzEngine(server, seed);
  }

  stop(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
    socket.on("error", () => socket.destroy());
    let bytes = Buffer.alloc(0);
    socket.on("data", (chunk) => {
      bytes = Buffer.concat([bytes, chunk]);
      const { messages, stoppedBy } = readRequests(bytes);
      if (stoppedBy === "bad") this.complaints.push(`an engine got ${JSON.stringify(bytes.toString("latin1"))}`);
      if (stoppedBy === "incomplete" && messages.length === 0) return;
      if (messages.length > 1) this.complaints.push(`an engine got ${messages.length} requests at once`);
      bytes = Buffer.alloc(0);
      for (const message of messages) this.#answer(socket, message);
    });
  }

  #answer(socket: Socket, message: StrictMessage): void {
    if (message.startLine.startsWith("GET /health")) {
      socket.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
      return;
    }
    this.seen.push(message);
    this.#latest.set(socket, message);
    if (message.body.equals(PLAIN)) {
      socket.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}");
      return;
    }
    const id = /"fuzz":"([\w-]+)"/.exec(message.body.toString("latin1"))?.[1] ?? "none";
    // What comes late comes only where no other answer has begun: within one it could not be told from that one's rest.
    const idle = (): boolean => !socket.destroyed && this.#latest.get(socket) === message;
    const clean = !id.endsWith("-e");
    const random = seededRandom(this.#seed ^ hash(id));
    const whole = answerBytes(random, id, message.body.includes('"stream":true'));
    const answer = clean || random() < 0.2 ? whole : mutate(random, whole);
    if (clean || random() < 0.5) {
      socket.write(answer);
    } else {
      const cut = Math.floor(random() * answer.length);
      socket.write(answer.subarray(0, cut));
      setTimeout(() => idle() && socket.write(answer.subarray(cut)), Math.floor(random() * 10));
    }
    // Without a length the end of the connection is that of the answer.
    if (whole.includes("connection: close")) setTimeout(() => socket.end(), 15);
    if (!clean && random() < 0.1) setTimeout(() => socket.destroy(), Math.floor(random() * 10));
    // Unasked and after the end, so for nobody.
    if (!clean && random() < 0.1) setTimeout(() => idle() && socket.write(`EVIL-${id}`), 5);
  }
}

/** FNV-1a. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (const char of text) value = Math.imul(value ^ char.codePointAt(0)!, 0x01000193);
  return value >>> 0;
}
