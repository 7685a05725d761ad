import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually, type Gateway, MODEL, Whole } from "./whole.ts";

/** Where conversations begin and go on, by a gateway process and a control plane that knows how many of them there are. */

const whole = new Whole();
let gateway: Gateway;
let controlUrl: string;

/** So many at once that either of two engines has several of them by chance alone. */
const TOGETHER = 24;

beforeAll(async () => {
  const [one, two] = [await whole.engine(), await whole.engine()];
  whole.writeFleet({ one: { url: one.url }, two: { url: two.url } });
  ({ url: controlUrl } = await whole.control());
  gateway = await whole.gateway(controlUrl);
  await gateway.hasSnapshot();
}, 30_000);
afterAll(() => whole.stop());

const first = (talk: string) => [{ role: "user", content: `conversation ${talk}` }];
const later = (talk: string) => [
  ...first(talk),
  { role: "assistant", content: "It turns a flow." },
  { role: "user", content: "And then?" },
];

/** All at the same time, each for a third of a second or so. */
async function ask(talks: readonly string[], messages: (talk: string) => unknown) {
  const answers = await Promise.all(
    talks.map((talk) => gateway.post({ model: MODEL, messages: messages(talk), max_tokens: 150 })),
  );
  expect(answers.map(({ status }) => status)).toEqual(talks.map(() => 200));
  return answers.map(({ headers }) => ({
    engine: headers.get("x-guidevane-engine"),
    reason: headers.get("x-guidevane-reason"),
  }));
}

const talks = (name: string) => Array.from({ length: TOGETHER }, (_, i) => `${name} ${i}`);

describe("where conversations begin", () => {
  it("is the engine with fewer streams where the cluster has one gateway, and later turns find it", async () => {
    // The control plane learns of the gateway by its first report, and says how many there are by its feed.
    let batch = 0;
    await eventually(async () => {
      batch += 1;
      return (await ask(talks(`early ${batch}`), first)).some(({ reason }) => reason === "second");
    });
    const names = talks("alone");
    const begun = await ask(names, first);
    expect(new Set(begun.map(({ reason }) => reason))).toEqual(new Set(["home", "second"]));
    const atOne = begun.filter(({ engine }) => engine === "one").length;
    expect(Math.abs(atOne - TOGETHER / 2)).toBeLessThanOrEqual(2);

    const wentOn = await ask(names, later);
    expect(wentOn.map(({ engine }) => engine)).toEqual(begun.map(({ engine }) => engine));
    expect(wentOn.map(({ reason }) => reason)).toEqual(
      begun.map(({ reason }) => (reason === "second" ? "followed" : "home")),
    );
  });

  it("is home where there are two, since neither sees all streams, until one is on its way out", async () => {
    const other = await whole.gateway(controlUrl, "a");
    await other.hasSnapshot();
    let batch = 0;
    await eventually(async () => {
      batch += 1;
      const begun = await ask(talks(`batch ${batch}`), first);
      return begun.every(({ reason }) => reason === "home");
    });
    // Told of the other one, it stays so.
    const begun = await ask(talks("two"), first);
    expect(begun.filter(({ reason }) => reason !== "home")).toEqual([]);

    // Some seconds of an answer keep it from ending at once.
    const messages = [{ role: "user" as const, content: "long" }];
    const running = await other.client.chat.completions.create({
      ...{ model: MODEL, messages, max_tokens: 3000 },
      stream: true,
    });
    const ended = other.program.end("SIGTERM");
    await eventually(async () => {
      batch += 1;
      return (await ask(talks(`batch ${batch}`), first)).some(({ reason }) => reason === "second");
    });
    expect(other.program.child.exitCode).toBeNull();
    for await (const chunk of running) expect(chunk.model).toBe(MODEL);
    expect(await ended).toBe(0);
  });
});
