import { once } from "node:events";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { GENERIC_PROFILE, type Profile } from "@guidevane/core";
import { type EmulatedEngine, startEmulatedEngine } from "./emulated-engine.ts";
import type { EmulatedEngineOptions } from "./engine-server.ts";

/** Emulated engines of a test, which are gone after it, and ways to ask them. */

export const quick: Profile = {
  ...GENERIC_PROFILE,
  reference: { promptTokens: 4, outputTokens: 3 },
  work: { prefillPerKtok: 100, decodePerKtok: 200 },
  prefillMsPerTok: 0,
  capacityWps: 1000,
  ttftMs: [[0, 2]],
  tbotMs: [[0, 1]],
};
/** Answers after an hour, so that what a test does to it comes first. */
export const slow: Profile = { ...quick, ttftMs: [[0, 3_600_000]] };

const started: EmulatedEngine[] = [];

/** After each test. */
export async function killStarted(): Promise<void> {
  await Promise.all(started.splice(0).map((engine) => engine.kill()));
}

export async function start(options: Partial<EmulatedEngineOptions> = {}): Promise<EmulatedEngine> {
  const engine = await startEmulatedEngine({ profile: quick, models: ["tiny", "other"], ...options });
  started.push(engine);
  return engine;
}

export const chat = { model: "tiny", messages: [{ role: "user", content: "Hello there" }] };

export async function post(
  engine: EmulatedEngine,
  path: string,
  body: unknown,
): Promise<{ status: number; headers: Headers; text: string }> {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const response = await fetch(`${engine.url}${path}`, { method: "POST", body: text });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

export async function get(engine: EmulatedEngine, path: string): Promise<{ status: number; text: string }> {
  const response = await fetch(`${engine.url}${path}`);
  return { status: response.status, text: await response.text() };
}

export function events(text: string): string[] {
  return text
    .split("\n\n")
    .filter((each) => each !== "")
    .map((each) => each.replace(/^data: /, ""));
}

/** Opens a chat stream and waits for its head. */
export async function openStream(
  engine: EmulatedEngine,
  more: object = {},
): Promise<{ sent: ClientRequest; response: IncomingMessage }> {
  const sent = request(`${engine.url}/v1/chat/completions`, { method: "POST" });
  sent.on("error", () => sent.destroy());
  sent.end(JSON.stringify({ ...chat, max_tokens: 8, stream: true, ...more }));
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  return { sent, response };
}

export function untilCounts(
  engine: EmulatedEngine,
  want: (counts: EmulatedEngine["counts"]) => boolean,
): Promise<void> {
  return new Promise((resolve) => {
    if (want(engine.counts)) return resolve();
    const stop = engine.watch((counts) => {
      if (!want(counts)) return;
      stop();
      resolve();
    });
  });
}
