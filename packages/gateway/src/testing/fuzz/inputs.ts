import type { Random } from "@guidevane/core";

/** What the fuzz sends from both sides: whole messages, odd ones, and any of them with some bytes changed. */

const PATHS = [
  "/v1/chat/completions",
  "/v1/completions",
  "/v1/responses",
  "/v1/messages",
  "/v1/messages/count_tokens",
  "/v1/embeddings",
  "/v1/rerank",
  "/tokenize",
];

/** Pieces that parsers disagree about. */
const TRICKS = [
  "\r\n",
  "\n",
  "\r",
  "\0",
  " ",
  "\t",
  "\x0b",
  ":",
  "Content-Length: 5\r\n",
  "Content-Length: 0\r\n",
  "Content-Length: +7\r\n",
  "content-length: 7, 7\r\n",
  "Transfer-Encoding: chunked\r\n",
  "Transfer-Encoding: identity\r\n",
  "Transfer-Encoding : chunked\r\n",
  "Transfer-Encoding: xchunked\r\n",
  "transfer-encoding: chunked, identity\r\n",
  " folded\r\n",
  "Connection: close\r\n",
  "Connection: content-length\r\n",
  "Expect: 100-continue\r\n",
  "Expect: 200-ok\r\n",
  "Upgrade: h2c\r\n",
  "Host: other\r\n",
  "0\r\n\r\n",
  "0\r\nx-t: 1\r\n\r\n",
  "5\r\nhello\r\n",
  "5;a=b\r\nhello\r\n",
  "ffffffffffffffff\r\n",
  "-1\r\n",
  "0x5\r\n",
  "HTTP/1.1 200 OK\r\n",
  "HTTP/1.1 100 Continue\r\n\r\n",
  "HTTP/1.0",
  "HTTP/1.1",
  "GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n",
  "CONNECT a:1 HTTP/1.1\r\nhost: x\r\n\r\n",
  "#",
  "\\",
  "%2e%2e/",
  "\xff\xfe",
  "\xe5\x8c",
];

export function choose<T>(random: Random, from: readonly T[]): T {
  return from[Math.floor(random() * from.length)]!;
}

/** One request of a client. @param id unlike any other's; stands in its body */
export function requestBytes(random: Random, id: string): Buffer {
  const padding = random() < 0.1 ? "y".repeat(Math.floor(random() * 40_000)) : "";
  const stream = random() < 0.3 ? '"stream":true,' : "";
  const model = random() < 0.3 ? "fast" : "m";
  const body = Buffer.from(`{"model":"${model}",${stream}"fuzz":"${id}","messages":[],"padding":"${padding}"}`);
  const head = `POST ${choose(random, PATHS)} HTTP/1.1\r\nhost: x\r\n`;
  if (random() < 0.7) return Buffer.concat([Buffer.from(`${head}content-length: ${body.length}\r\n\r\n`), body]);
  const cut = Math.floor(random() * body.length);
  return Buffer.concat([
    Buffer.from(`${head}transfer-encoding: chunked\r\n\r\n`),
    ...[body.subarray(0, cut), body.subarray(cut)].flatMap((part) =>
      part.length === 0 ? [] : [Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from("\r\n")],
    ),
    Buffer.from("0\r\n\r\n"),
  ]);
}

/** An engine's answer to the request of this id, which stands in it: JSON, or events where a stream was asked for. */
export function answerBytes(random: Random, id: string, stream: boolean): Buffer {
  const status =
    random() < 0.8 ? "200 OK" : choose(random, ["400 Bad", "404 Not", "429 Many", "500 Error", "503 Busy"]);
  const text = stream
    ? `data: {"answer":"${id}","choices":[]}\n\ndata: [DONE]\n\n`
    : `{"answer":"${id}","choices":[],"padding":"${random() < 0.1 ? "z".repeat(30_000) : ""}"}`;
  const type = stream ? "text/event-stream" : "application/json";
  const head = `HTTP/1.1 ${status}\r\ncontent-type: ${type}\r\nx-answer: ${id}\r\n`;
  if (!stream && random() < 0.6) return Buffer.from(`${head}content-length: ${text.length}\r\n\r\n${text}`);
  if (random() < 0.1) return Buffer.from(`${head}connection: close\r\n\r\n${text}`);
  return Buffer.from(`${head}transfer-encoding: chunked\r\n\r\n${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`);
}

/** The same bytes with up to four of them changed, dropped, doubled, or with a trick put between. */
export function mutate(random: Random, bytes: Buffer): Buffer {
  let mutated = bytes;
  for (let left = 1 + Math.floor(random() * 4); left > 0; left--) {
    // Heads and the ends of bodies are where it matters.
    const reach = random() < 0.8 ? Math.min(mutated.length, 400) : mutated.length;
    const at = Math.floor(random() * (reach + 1));
    const length = Math.floor(random() * 12);
    const [before, after] = [mutated.subarray(0, at), mutated.subarray(at)];
    switch (Math.floor(random() * 5)) {
      case 0:
        mutated = Buffer.concat([before, after.subarray(length)]);
        break;
      case 1:
        mutated = Buffer.concat([before, after.subarray(0, length), after]);
        break;
      case 2:
        mutated = Buffer.concat([before, Buffer.from([Math.floor(random() * 256)]), after.subarray(1)]);
        break;
      default: {
        const line = before.lastIndexOf("\r\n");
        const place = random() < 0.6 && line >= 0 ? line + 2 : at;
        const trick = Buffer.from(choose(random, TRICKS), "latin1");
        mutated = Buffer.concat([mutated.subarray(0, place), trick, mutated.subarray(place)]);
      }
    }
  }
  return mutated;
}
