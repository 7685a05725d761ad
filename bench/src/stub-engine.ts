import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/**
 * A process that answers chat completions at once with fixed bytes, whole or as a stream of 32 events, so that what is
 * timed is the way there. Tells its parent its address.
 */
const WHOLE = JSON.stringify({
  id: "c",
  object: "chat.completion",
  created: 1,
  model: "m",
  choices: [{ index: 0, message: { role: "assistant", content: "word ".repeat(32) }, finish_reason: "stop" }],
  usage: { prompt_tokens: 8, completion_tokens: 32, total_tokens: 40 },
});
const event = (delta: unknown, finish: string | null) =>
  `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
const EVENTS = [
  ...Array.from({ length: 32 }, () => event({ content: "word " }, null)),
  event({}, "stop"),
  "data: [DONE]\n\n",
];

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    if (!Buffer.concat(chunks).includes('"stream":true')) {
      response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(WHOLE) });
      response.end(WHOLE);
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const each of EVENTS) response.write(each);
    response.end();
  });
});
server.listen(0, "127.0.0.1", () => {
  process.send!({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
});
process.on("disconnect", () => process.exit());
