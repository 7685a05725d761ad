import { createServer, type ServerResponse } from "node:http";
import { type Dispatcher, Pool } from "undici";

/** `node bare-node-process.ts PORT HOST:PORT`: the yardstick of `bare-node.ts`. No error is handled but by an end. */
const [port, engine] = process.argv.slice(2);
const pool = new Pool(`http://${engine}`, { connections: null, pipelining: 1 });

class PassOn implements Dispatcher.DispatchHandler {
  readonly #response: ServerResponse;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  onRequestStart(): void {}

  onResponseStart(_controller: unknown, status: number, headers: Record<string, string | string[] | undefined>): void {
    delete headers.connection;
    delete headers["keep-alive"];
    delete headers["transfer-encoding"];
    this.#response.writeHead(status, headers);
  }

  onResponseData(_controller: unknown, chunk: Buffer): void {
    this.#response.write(chunk);
  }

  onResponseEnd(): void {
    this.#response.end();
  }

  onResponseError(): void {
    this.#response.destroy();
  }
}

const server = createServer({ noDelay: true }, (request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const body = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
    if (typeof JSON.parse(body.toString()).model !== "string") response.writeHead(400).end();
    const { "content-type": type = "application/json" } = request.headers;
    const headers = { "content-type": type, "content-length": String(body.length) };
    pool.dispatch({ path: request.url!, method: "POST", headers, body }, new PassOn(response));
  });
});
server.listen(Number(port), "127.0.0.1");
