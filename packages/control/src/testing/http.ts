import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type FeedEvent, parseFeedEvent } from "@guidevane/core";

export interface TestServer {
  readonly port: number;
  close(): Promise<void>;
}

/** A server on a free port of loopback. */
export async function serve(
  handler: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<TestServer> {
  const server = createServer(handler);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Events of a feed in order; comments are passed over. */
export async function* feedEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<FeedEvent> {
  let text = "";
  for await (const chunk of body.pipeThrough(new TextDecoderStream() as never) as unknown as AsyncIterable<string>) {
    text += chunk;
    for (let end = text.indexOf("\n\n"); end !== -1; end = text.indexOf("\n\n")) {
      const lines = text.slice(0, end).split("\n");
      text = text.slice(end + 2);
      const field = (name: string) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
      const event = field("event");
      if (event !== undefined) yield parseFeedEvent(event, field("data") ?? "")!;
    }
  }
}

/** The next event of that name, passing over others. */
export async function nextEvent<Name extends FeedEvent["event"]>(
  events: AsyncGenerator<FeedEvent>,
  name: Name,
): Promise<Extract<FeedEvent, { event: Name }>["data"]> {
  for (;;) {
    const { value, done } = await events.next();
    if (done) throw new Error(`the feed ended before an event ${name}`);
    if (value.event === name) return value.data as never;
  }
}
