import { once } from "node:events";
import { request } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { seededRandom } from "@guidevane/core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { HEADER } from "./http-answer-grammar.ts";
import { HttpAnswerParser } from "./http-answer-parser.ts";

interface Parsed {
  status: number | null;
  headers: readonly string[];
  body: string;
  end: "reusable" | "last" | "malformed" | null;
  message: string;
}

/** What the parser makes of these pieces, and of the connection's end after them where `closes`. */
function parse(pieces: readonly (string | Buffer)[], closes = false): Parsed {
  const parsed: Parsed = { status: null, headers: [], body: "", end: null, message: "" };
  const parser = new HttpAnswerParser({
    onHead(status, _text, headers) {
      Object.assign(parsed, { status, headers });
    },
    onData(chunk) {
      parsed.body += chunk.toString("latin1");
    },
    onEnd(reusable) {
      parsed.end = reusable ? "reusable" : "last";
    },
    onMalformed(message) {
      Object.assign(parsed, { end: "malformed", message });
    },
  });
  for (const piece of pieces) parser.push(Buffer.from(piece as string, "latin1"));
  if (closes) parser.close();
  return parsed;
}

const OK = "HTTP/1.1 200 OK\r\n";

describe("a header's line", () => {
  it("is read as the grammar has it", () => {
    const random = seededRandom(7);
    const letters = ["a", "-", ":", ":", " ", "\t", "\r", "\n", "\0", "\x7f", "\x80", "ÿ", "é", '"', "(", "~", "0"];
    for (let i = 0; i < 20_000; i++) {
      const line = Array.from({ length: random() * 8 }, () => letters[Math.floor(random() * letters.length)]).join("");
      if (line === "" || line.includes("\r\n") || line.endsWith("\r")) continue;
      const want = HEADER.exec(line);
      const got = parse([`${OK}${line}\r\ncontent-length: 0\r\n\r\n`]);
      expect(got.headers.slice(0, -2), JSON.stringify(line)).toEqual(want === null ? [] : want.slice(1));
      if (want === null) expect(got.end, JSON.stringify(line)).toBe("malformed");
    }
  });
});

describe("the parser of answers", () => {
  it.each([
    ["a length", `${OK}content-length: 5\r\n\r\nhello`, "hello", "reusable"],
    [
      "chunks",
      `${OK}transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n6;ext="a"\r\n world\r\n0\r\n\r\n`,
      "hello world",
      "reusable",
    ],
    ["chunks and trailers", `${OK}Transfer-Encoding: Chunked\r\n\r\n1\r\na\r\n0\r\nx-sum: 1\r\n\r\n`, "a", "reusable"],
    ["no body by its status", "HTTP/1.1 204 No Content\r\ncontent-length: 3\r\n\r\n", "", "reusable"],
    ["an empty body", `${OK}content-length: 0\r\n\r\n`, "", "reusable"],
    [
      "informational answers before it",
      `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n${OK}content-length: 1\r\n\r\nx`,
      "x",
      "reusable",
    ],
    ["close asked for", `${OK}connection: close\r\ncontent-length: 1\r\n\r\nx`, "x", "last"],
    ["HTTP/1.0", "HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\nx", "x", "last"],
    ["more than it said", `${OK}content-length: 1\r\n\r\nxHTTP/1.1 200 OK`, "x", "last"],
    ["more after its chunks", `${OK}transfer-encoding: chunked\r\n\r\n0\r\n\r\nx`, "", "last"],
  ])("reads %s, in one piece and byte by byte", (_what, text, body, end) => {
    expect(parse([text])).toMatchObject({ body, end });
    const bytes = parse([...text]);
    expect(bytes.body).toBe(body);
    // Byte by byte nobody knows yet that more will come.
    expect(["reusable", end]).toContain(bytes.end);
  });

  it("takes the connection's end for the answer's where nothing else says it, and only there", () => {
    expect(parse([`${OK}\r\n`, "some", "thing"], true)).toMatchObject({ body: "something", end: "last" });
    expect(parse([`${OK}content-length: 9\r\n\r\nsome`], true)).toMatchObject({ end: null });
    expect(parse([`${OK}transfer-encoding: chunked\r\n\r\n1\r\na\r\n`], true)).toMatchObject({ end: null });
  });

  it("keeps headers as they were sent, repeated ones too, without the blanks around values", () => {
    const { headers } = parse([
      `${OK}X-A:  one \r\nset-cookie: a\r\nSet-Cookie: b\r\nempty:\r\ncontent-length: 0\r\n\r\n`,
    ]);
    expect(headers).toEqual(["X-A", "one", "set-cookie", "a", "Set-Cookie", "b", "empty", "", "content-length", "0"]);
  });

  it.each([
    ["no HTTP", "SSH-2.0-OpenSSH\r\n", "does not begin"],
    ["HTTP/2", "HTTP/2 200\r\n\r\n", "HTTP/"],
    ["a status of two digits", "HTTP/1.1 20 OK\r\n\r\n", "status line"],
    ["a bare line feed in the head", "HTTP/1.1 200 OK\r\nx: a\ny: b\r\n\r\n", ""],
    ["line feeds alone", "HTTP/1.1 200 OK\ncontent-length: 1\n\nx", "CR LF"],
    ["a folded header", `${OK}x: a\r\n b\r\n\r\n`, "header"],
    ["a space before the colon", `${OK}content-length : 5\r\n\r\n`, "header"],
    ["NUL in a value", `${OK}x: a\0b\r\n\r\n`, "header"],
    ["two lengths", `${OK}content-length: 1\r\ncontent-length: 1\r\n\r\nx`, "two content-length"],
    ["a length with a sign", `${OK}content-length: +1\r\n\r\nx`, "content-length"],
    ["a list of lengths", `${OK}content-length: 1, 1\r\n\r\nx`, "content-length"],
    [
      "a length and chunks",
      `${OK}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
      "transfer-encoding",
    ],
    ["chunks in HTTP/1.0", "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", "transfer-encoding"],
    ["another coding", `${OK}transfer-encoding: gzip, chunked\r\n\r\n`, "transfer-encoding"],
    ["a coding twice", `${OK}transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n`, "transfer-encoding"],
    ["an upgrade", "HTTP/1.1 101 Switching\r\n\r\n", "upgrade"],
    ["a chunk size that is no number", `${OK}transfer-encoding: chunked\r\n\r\nxyz\r\n`, "chunk size"],
    ["a chunk size with a sign", `${OK}transfer-encoding: chunked\r\n\r\n-1\r\n`, "chunk size"],
    ["a chunk size too large", `${OK}transfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n`, "chunk size"],
    ["a chunk size line without CR", `${OK}transfer-encoding: chunked\r\n\r\n1\na\r\n`, "CR LF"],
    ["a chunk longer than it says", `${OK}transfer-encoding: chunked\r\n\r\n1\r\nab\r\n`, "longer"],
    ["an endless size line", `${OK}transfer-encoding: chunked\r\n\r\n1;${"a".repeat(2000)}`, "1024"],
    ["a bad trailer", `${OK}transfer-encoding: chunked\r\n\r\n0\r\nno trailer\r\n\r\n`, "trailer"],
    ["an endless head", `${OK}x: ${"a".repeat(70_000)}`, "65536"],
    ["too many informational answers", "HTTP/1.1 102 Processing\r\n\r\n".repeat(33), "informational"],
  ])("refuses %s, in one piece and byte by byte", (_what, text, message) => {
    // A head that has not ended is looked at anew with each piece: so many single bytes only where it ends.
    const whole = Math.max(0, text.length - 6000);
    for (const pieces of [[text], [text.slice(0, whole), ...text.slice(whole)]]) {
      const parsed = parse(pieces);
      expect(parsed.end).toBe("malformed");
      expect(parsed.message).toContain(message);
    }
  });
});

/** Bytes at random, and answers with a few bytes changed, so that most are nearly right. */
function mutated(random: () => number): string {
  const body = "x".repeat(Math.floor(random() * 40));
  const size = body.length.toString(16);
  const framed = [
    `content-length: ${body.length}\r\n\r\n${body}`,
    `transfer-encoding: chunked\r\n\r\n${size}\r\n${body}\r\n0\r\n\r\n`,
    `\r\n${body}`,
  ][Math.floor(random() * 3)]!;
  let text = `HTTP/1.1 ${[200, 404, 503][Math.floor(random() * 3)]} Text\r\nserver: a\r\n${framed}`;
  const alphabet = "\r\n\0\t :;,0123456789abfxHTP/";
  for (let changes = Math.floor(random() * 3); changes > 0; changes--) {
    const at = Math.floor(random() * text.length);
    const put = alphabet[Math.floor(random() * alphabet.length)]!;
    text = text.slice(0, at) + put + text.slice(at + (random() < 0.5 ? 1 : 0));
  }
  return text;
}

describe("beside node's own client, on answers with bytes changed", () => {
  let answer = "";
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => socket.end(Buffer.from(answer, "latin1")));
  });
  beforeAll(async () => {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
  });
  afterAll(() => server.close());

  /** Status and body as node's client has them; null where it gives up. */
  function byNode(): Promise<{ status: number; body: string } | null> {
    return new Promise((resolve) => {
      const asked = request({ port: (server.address() as AddressInfo).port, agent: false }, (response) => {
        let body = "";
        response.setEncoding("latin1");
        response.on("data", (chunk: string) => {
          body += chunk;
        });
        response.on("end", () => resolve(response.complete ? { status: response.statusCode!, body } : null));
        response.on("error", () => resolve(null));
      });
      asked.on("upgrade", () => resolve(null));
      asked.on("error", () => resolve(null));
      asked.end();
    });
  }

  it("never reads a whole answer where node reads another one", async () => {
    const random = seededRandom(20_261_130);
    let both = 0;
    for (let i = 0; i < 400; i++) {
      answer = mutated(random);
      const cut = Math.floor(random() * answer.length);
      const parsed = parse([answer.slice(0, cut), answer.slice(cut)], true);
      if (parsed.end !== "reusable" && parsed.end !== "last") continue;
      const node = await byNode();
      if (node === null) continue;
      both += 1;
      expect({ status: parsed.status, body: parsed.body }, JSON.stringify(answer)).toEqual(node);
    }
    expect(both).toBeGreaterThan(100);
  });
});
