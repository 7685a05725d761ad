import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually, type Gateway, MODEL, Whole } from "./whole.ts";

/** How a gateway process ends when it is asked to. */

const whole = new Whole();
let gateway: Gateway;

beforeAll(async () => {
  const engine = await whole.engine();
  whole.writeFleet({ one: { url: engine.url } });
  // Nothing answers there: it routes by its fleet file.
  gateway = await whole.gateway("http://127.0.0.1:9", "a", "--threads", "2");
}, 30_000);
afterAll(() => whole.stop());

describe("SIGTERM to a gateway of two threads", () => {
  it("fails /readyz at once, lets the streams of both threads end whole, and ends with 0", async () => {
    const body = { model: MODEL, messages: [{ role: "user" as const, content: "long" }], max_tokens: 400 };
    // Eight connections, which the kernel spreads over the threads.
    const streams = await Promise.all(
      Array.from({ length: 8 }, () => gateway.client.chat.completions.create({ ...body, stream: true })),
    );
    const { child } = gateway.program;
    const exited = once(child, "exit");
    child.kill("SIGTERM");
    await eventually(async () => (await fetch(`${gateway.adminUrl}/readyz`)).status === 503, 2000);

    const reasons = await Promise.all(
      streams.map(async (stream) => {
        let reason: string | null = null;
        for await (const chunk of stream) reason = chunk.choices[0]?.finish_reason ?? reason;
        return reason;
      }),
    );
    expect(reasons).toEqual(streams.map(() => "length"));
    expect(await exited).toEqual([0, null]);
  }, 20_000);
});
