import type { StreamClient, Streamed } from "./stream.ts";

/** One request to come. */
export interface Planned {
  /** After the start. */
  readonly atMs: number;
  readonly client: StreamClient;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Replayed {
  /** By the plan's order. */
  readonly answers: readonly Streamed[];
  /** The most that a request was sent after its time: above some ms the client itself was too slow. */
  readonly lateMs: number;
}

/** Sends each request at its time, whatever became of those before, and waits for all of them. */
export async function replay(plan: readonly Planned[]): Promise<Replayed> {
  const startMs = performance.now();
  const order = [...plan.entries()].sort(([, a], [, b]) => a.atMs - b.atMs);
  const answers: Promise<Streamed>[] = [];
  let lateMs = 0;
  for (const [index, { atMs, client, body, headers }] of order) {
    const inMs = startMs + atMs - performance.now();
    if (inMs > 0) await new Promise((resolve) => setTimeout(resolve, inMs));
    lateMs = Math.max(lateMs, performance.now() - startMs - atMs);
    answers[index] = client.ask(body, headers);
  }
  return { answers: await Promise.all(answers), lateMs };
}

/** Times of a Poisson stream of `rateRps` within `seconds`, or for longer until there are `least`; ms. */
export function poissonMs(rateRps: number, seconds: number, least: number, random: () => number): number[] {
  const times: number[] = [];
  for (let atMs = 0; ; ) {
    atMs -= (Math.log(1 - random()) * 1000) / rateRps;
    if (atMs >= seconds * 1000 && times.length >= least) return times;
    times.push(atMs);
  }
}
