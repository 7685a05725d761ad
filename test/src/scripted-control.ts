import { createHash } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type ClusterSnapshot, snapshotTag } from "@guidevane/core";

/** What a control plane would answer to `GET /v1/snapshot`, said by a test: also what no control plane should say. */
export interface Offer {
  readonly json: string;
  readonly tag: string;
  /** Default: the right one. */
  readonly checksum?: string;
}

/** Stands where a control plane would and offers a gateway the snapshots that a test puts there. */
export class ScriptedControl {
  readonly #server: Server;
  #offer: Offer | null = null;
  #waiting = new Set<() => void>();

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(): Promise<ScriptedControl> {
    const server = createServer();
    const control = new ScriptedControl(server);
    server.on("request", (request, response) => {
      request.resume();
      if (!request.url!.startsWith("/v1/snapshot")) {
        response.writeHead(request.method === "POST" ? 204 : 404).end();
        return;
      }
      const answer = () => {
        const offer = control.#offer;
        if (offer === null) response.writeHead(503).end(JSON.stringify({ error: { code: "no_snapshot" } }));
        else if (request.headers["if-none-match"] === `"${offer.tag}"`) control.#waiting.add(answer);
        else {
          const checksum = offer.checksum ?? createHash("sha256").update(offer.json).digest("hex");
          const headers = {
            etag: `"${offer.tag}"`,
            "x-guidevane-checksum": checksum,
            "content-type": "application/json",
          };
          response.writeHead(200, headers).end(offer.json);
        }
      };
      answer();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return control;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Offers this from now on; who waits for a change gets it at once. */
  offer(offer: Offer): void {
    this.#offer = offer;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const answer of waiting) answer();
  }

  offerSnapshot(snapshot: ClusterSnapshot): void {
    this.offer({ json: JSON.stringify(snapshot), tag: snapshotTag(snapshot) });
  }

  stop(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }
}
