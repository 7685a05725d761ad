import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import {
  type ClusterSnapshot,
  type DemandReport,
  type FeedEvent,
  parseDemandReport,
  snapshotTag,
  writeFeedEvent,
} from "@guidevane/core";

/** A control plane that says what a test tells it to, by CONTRACT §7. */
export class ScriptedControl {
  readonly url: string;
  readonly reports: DemandReport[] = [];
  /** Sent instead of the right one. */
  checksum: string | null = null;
  snapshotRequests = 0;
  /** Feeds opened, those that ended among them. */
  feedsEver = 0;
  readonly #server: Server;
  readonly #feeds = new Set<ServerResponse>();
  readonly #polls = new Set<{ request: IncomingMessage; response: ServerResponse }>();
  #json: string | null = null;
  #tag = "";

  private constructor(server: Server, port: number) {
    this.#server = server;
    this.url = `http://127.0.0.1:${port}`;
  }

  static async start(port = 0): Promise<ScriptedControl> {
    const server = createServer();
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("no port");
    const control = new ScriptedControl(server, address.port);
    server.on("request", (request, response) => control.#serve(request, response));
    return control;
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  get feeds(): number {
    return this.#feeds.size;
  }

  publish(snapshot: ClusterSnapshot): void {
    this.publishText(JSON.stringify(snapshot), snapshotTag(snapshot));
  }

  /** Publishes any text, good or bad. */
  publishText(json: string, tag: string): void {
    this.#json = json;
    this.#tag = tag;
    for (const { request, response } of this.#polls) this.#answer(request, response);
    this.#polls.clear();
    this.say({ event: "snapshot", data: { tag } });
  }

  say(event: FeedEvent): void {
    for (const feed of this.#feeds) feed.write(writeFeedEvent(event));
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    if (!this.#server.listening) return;
    this.#server.close();
    await once(this.#server, "close");
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? "/", this.url);
    if (url.pathname === "/v1/feed") {
      response.writeHead(200, { "content-type": "text/event-stream" }).write(":\n\n");
      this.#feeds.add(response);
      this.feedsEver += 1;
      response.on("close", () => this.#feeds.delete(response));
    } else if (url.pathname === "/v1/snapshot") {
      this.snapshotRequests += 1;
      if (this.#json === null || request.headers["if-none-match"] === `"${this.#tag}"`)
        this.#polls.add({ request, response });
      else this.#answer(request, response);
    } else if (url.pathname === "/v1/demand") {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        this.reports.push(parseDemandReport(JSON.parse(Buffer.concat(chunks).toString())));
        response.writeHead(204).end();
      });
    } else response.writeHead(404).end();
  }

  #answer(_request: IncomingMessage, response: ServerResponse): void {
    const json = this.#json!;
    const sha = createHash("sha256").update(json).digest("hex");
    response.writeHead(200, {
      "content-type": "application/json",
      "content-encoding": "gzip",
      etag: `"${this.#tag}"`,
      "x-guidevane-checksum": this.checksum ?? sha,
    });
    response.end(gzipSync(json));
  }
}
