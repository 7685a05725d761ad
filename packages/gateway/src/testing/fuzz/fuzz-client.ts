import { once } from "node:events";
import { connect } from "node:net";
import { type Random, seededRandom } from "@guidevane/core";
import { mutate, requestBytes } from "./inputs.ts";
import { readAnswers, readRequests, type StrictMessage } from "./strict-http.ts";

/** What one connection of a client was about, and what was wrong with what came back. */
export interface FuzzRun {
  /** Bodies that an engine may get because of it. */
  readonly bodies: readonly string[];
  readonly complaints: readonly string[];
}

/** How long a connection that stays open is listened to: longer than every timer of the gateway under test. */
const PATIENCE_MS = 3500;
/** And one that nothing has come from, on a machine that has much else to do. */
const SILENCE_MS = 15_000;
const LAST = "GET /v1/models HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";

/**
 * Sends one to three requests in a row, and the list of models as the last. On every other connection the bytes are
 * changed (ids end with `-c`); on the others the engine answers oddly (`-e`).
 */
export async function fuzzClient(url: string, seed: number, number: number): Promise<FuzzRun> {
  const random = seededRandom(seed + number);
  const side = number % 2 === 0 ? "c" : "e";
  const ids = Array.from({ length: 1 + Math.floor(random() * 3) }, () => createId(random, side));
  const requests = ids.map((id) => requestBytes(random, id));
  const whole = Buffer.concat(requests);
  const bytes = Buffer.concat([side === "c" ? mutate(random, whole) : whole, Buffer.from(LAST)]);
  const asked = readRequests(bytes);
  const { received, closed } = await exchange(url, random, bytes);

  const complaints: string[] = [];
  const complain = (what: string): void => {
    const [out, back] = [bytes, received].map((each) => JSON.stringify(each.toString("latin1").slice(0, 3000)));
    complaints.push(`connection ${number}: ${what}\n  sent ${out}\n  got  ${back}`);
  };
  const { messages, stoppedBy } = readAnswers(received, closed);
  const answers = messages.filter(({ startLine }) => !startLine.startsWith("HTTP/1.1 1"));
  if (stoppedBy === "bad") complain("what came back is not HTTP");
  if (answers.length > asked.messages.length + 1)
    complain(`${answers.length} answers to ${asked.messages.length} requests`);
  if (asked.messages.length > 0 && received.length === 0 && !closed) complain("no answer at all");
  for (const [at, answer] of answers.entries()) {
    const own = side === "e" ? ids.slice(at, at + 1) : ids;
    // A changed byte makes an id that nobody has.
    const strange = idsIn(answer).find((id) => known.has(id) && !own.includes(id));
    if (strange !== undefined) complain(`answer ${at} is of ${strange}`);
  }
  return { bodies: asked.messages.map(({ body }) => body.toString("latin1")), complaints };
}

/** Ids that were ever sent. */
const known = new Set<string>();

/** Of no pattern, so that no change makes one of another. */
function createId(random: Random, side: string): string {
  const id = `${[0, 0]
    .map(() =>
      Math.floor(random() * 2 ** 32)
        .toString(16)
        .padStart(8, "0"),
    )
    .join("")}-${side}`;
  known.add(id);
  return id;
}

function idsIn({ headers, body }: StrictMessage): string[] {
  const named = headers.filter(([name]) => name === "x-answer").map(([, value]) => value);
  return [...named, ...[...body.toString("latin1").matchAll(/[0-9a-f]{16}-[ce]/g)].map(([id]) => id)];
}

async function exchange(url: string, random: Random, bytes: Buffer): Promise<{ received: Buffer; closed: boolean }> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  const chunks: Buffer[] = [];
  let closed = false;
  const over = new Promise<void>((resolve) => {
    let patience = setTimeout(() => {
      if (chunks.length > 0) resolve();
      else patience = setTimeout(resolve, SILENCE_MS - PATIENCE_MS);
    }, PATIENCE_MS);
    socket.on("close", () => {
      closed = true;
      clearTimeout(patience);
      resolve();
    });
  });
  socket.on("error", () => socket.destroy());
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  await Promise.race([once(socket, "connect"), over]);
  for (let at = 0; at < bytes.length && !socket.destroyed; ) {
    const end = random() < 0.5 ? bytes.length : at + 1 + Math.floor(random() * bytes.length);
    socket.write(bytes.subarray(at, end));
    at = end;
    await new Promise((resolve) => setImmediate(resolve));
  }
  await over;
  socket.destroy();
  return { received: Buffer.concat(chunks), closed };
}
