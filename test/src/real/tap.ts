import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** A wire between a gateway and an engine that tells when a connection is closed: what an engine itself says of it comes late. */
export class Tap {
  url = "";
  /** The connection that last brought bytes of a request. */
  latest: Socket | null = null;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(engineUrl: string) {
    const { hostname, port } = new URL(engineUrl);
    this.#server = createServer((near) => {
      const far = connect(Number(port), hostname);
      for (const [socket, other] of [
        [near, far],
        [far, near],
      ] as const) {
        this.#sockets.add(socket);
        socket.on("error", () => other.destroy());
        socket.on("close", () => {
          this.#sockets.delete(socket);
          other.destroy();
        });
        socket.pipe(other);
      }
      near.on("data", (bytes: Buffer) => {
        // Not a probe's.
        if (bytes.subarray(0, 4).toString() === "POST") this.latest = near;
      });
    });
  }

  static async before(engineUrl: string): Promise<Tap> {
    const tap = new Tap(engineUrl);
    tap.#server.listen(0, "127.0.0.1");
    await once(tap.#server, "listening");
    tap.url = `http://127.0.0.1:${(tap.#server.address() as AddressInfo).port}`;
    return tap;
  }

  /** How long until the connection that is the latest now is closed, ms. */
  async latestCloses(): Promise<number> {
    const socket = this.latest!;
    const startMs = performance.now();
    // Not `once`: it would fail for an error, such as that of an answer which is written meanwhile.
    if (!socket.closed) await new Promise((resolve) => socket.once("close", resolve));
    return performance.now() - startMs;
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, "close");
  }
}
