import { once } from "node:events";
import { connect } from "node:net";
import { ManualClock } from "@guidevane/core";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Feed } from "./feed.ts";
import { serve, type TestServer } from "./testing/http.ts";

let clock: ManualClock;
let feed: Feed;
let server: TestServer;

beforeEach(async () => {
  clock = new ManualClock();
  feed = new Feed(clock);
  server = await serve((request, response) => feed.open(request.url === "/west" ? "west" : "east", response, []));
});
afterEach(async () => {
  feed.close();
  await server.close();
});

/** Reads the feed of a cluster; gives what has come when `enough` says so. */
async function reader(path: string) {
  const reply = await fetch(`http://127.0.0.1:${server.port}${path}`);
  const chunks = reply
    .body!.pipeThrough(new TextDecoderStream() as never)
    .getReader() as ReadableStreamDefaultReader<string>;
  let text = "";
  return async (enough: (text: string) => boolean): Promise<string> => {
    while (!enough(text)) {
      const { value, done } = await chunks.read();
      if (done) throw new Error(`the feed ended after ${JSON.stringify(text)}`);
      text += value;
    }
    return text;
  };
}

it("keeps a quiet feed alive by a comment each 15 s", async () => {
  const read = await reader("/east");
  await read((text) => text === ":\n\n");
  clock.advance(15_000);
  await read((text) => text === ":\n\n:\n\n");
  clock.advance(30_000);
  await read((text) => text === ":\n\n".repeat(4));
});

it("sends an event of one cluster to its readers alone, and one of the fleet to all", async () => {
  const [east, west] = [await reader("/east"), await reader("/west")];
  feed.send({ event: "gateways", data: { gateways: 3 } }, "east");
  feed.send({ event: "snapshot", data: { tag: "1-2" } });
  expect(await east((text) => text.includes("1-2"))).toContain('event: gateways\ndata: {"gateways":3}\n\n');
  expect(await west((text) => text.includes("1-2"))).not.toContain("gateways");
});

it("cuts off a reader that falls too far behind, and goes on with the others", async () => {
  const read = await reader("/east");
  const slow = connect(server.port, "127.0.0.1");
  slow.write("GET /east HTTP/1.1\r\nhost: x\r\n\r\n");
  await once(slow, "data");
  slow.pause();
  const cut = once(slow, "close");
  slow.on("error", () => {});
  const big = {
    event: "engines",
    data: { engines: Object.fromEntries([["e".repeat(1_000_000), "out" as const]]) },
  } as const;
  for (let sent = 1; sent <= 40; sent++) {
    feed.send(big);
    await read((text) => text.length > sent * 1_000_000);
  }
  slow.resume();
  await cut;
  feed.send({ event: "snapshot", data: { tag: "9-9" } });
  await read((text) => text.includes("9-9"));
});
