import { type Random, seededRandom } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { type FixtureBody, randomBody, randomLongBody } from "./body.fixture.ts";
import { type Driver, nativeMissing } from "./driver.fixture.ts";
import { compareWithParse, shownBody } from "./meaning.fixture.ts";
import { HEAD, PATH } from "./router.ts";
import { sameAnswers, shake, twins } from "./twins.fixture.ts";

/**
 * For as long as it is told, and from another seed:
 * GUIDEVANE_FUZZ_SECONDS=600 GUIDEVANE_FUZZ_SEED=1 npx vitest run packages/selector/src/fuzz.test.ts
 */
const seconds = Number(process.env.GUIDEVANE_FUZZ_SECONDS ?? 0);
const seed = Number(process.env.GUIDEVANE_FUZZ_SEED ?? 12);

/** A fleet with classes that need something, engines that lack something, and a name beyond ASCII. */
function fleetOfAllKinds(): [Driver, Driver] {
  const engines = [
    { id: "a", weight: 0.5, definition: { capabilities: ["tools" as const], residency: "eu" } },
    { id: "b", weight: 0.3, definition: { capabilities: ["vision" as const], maxContextTokens: 300 } },
    { id: "c", weight: 0.2, definition: { maxContextTokens: 100_000 } },
    { id: "r", weight: 0 },
  ];
  const needs = { capabilities: [], residency: [], compute: [], contextTokens: 0, networkMs: null };
  return twins([
    [
      { class: "seeing", engines },
      { class: "chat", engines },
      { class: "tools", engines: [{ id: "t", weight: 1 }] },
    ],
    {
      classes: {
        seeing: { model: "m-chat", needs: { ...needs, capabilities: ["vision"], residency: ["eu", "us"] } },
        chat: {},
        tools: { needs: { ...needs, capabilities: ["tools"] } },
        vision: { model: "modèle" },
      },
    },
  ]);
}

/** Any head; then both routers' answers on this body. */
function compareTwins(random: Random, [ts, native]: readonly [Driver, Driver], body: Uint8Array): Twinned {
  const words = ts.head.words;
  words[HEAD.path] = Math.floor(random() * Object.keys(PATH).length);
  words[HEAD.sessionKeyBytes] = random() < 0.1 ? Math.floor(random() * 64) : 0;
  words[HEAD.residency] = random() < 0.1 ? Math.floor(random() * 4) : 0;
  words[HEAD.classNamed] = random() < 0.1 ? Math.floor(random() * 6) : 0;
  native.head.words.set(words);
  const expected = ts.router.route(ts.head, body, ts.out);
  const found = native.router.route(native.head, body, native.out);
  const isSame = found === expected && sameAnswers(ts.out, native.out);
  const wrong = isSame ? null : `TypeScript ${expected} ${ts.out}, native ${found} ${native.out}`;
  return { status: expected, wrong };
}

interface Twinned {
  readonly status: number;
  /** Where the twins differ; null = nowhere. */
  readonly wrong: string | null;
}

const title = nativeMissing === null ? "" : ` (skipped: ${nativeMissing})`;

describe.skipIf(nativeMissing !== null)(`twins on bodies of every kind${title}`, () => {
  it("answer the same on 8,000 of them", () => {
    const random = seededRandom(seed);
    const pair = fleetOfAllKinds();
    const statuses = new Set<number>();
    for (let round = 0; round < 8000; round++) {
      if (round % 100 === 0) shake(random, pair);
      const { bytes } = round % 1000 === 0 ? randomLongBody(random) : randomBody(random);
      const { status, wrong } = compareTwins(random, pair, bytes);
      if (wrong !== null) expect.fail(`seed ${seed}, round ${round}: ${wrong}: ${shownBody(bytes)}`);
      statuses.add(status);
    }
    // All but that a body is too unusual for its size, which takes a mebibyte.
    expect([...statuses].sort()).toEqual(expect.arrayContaining([0, 1, 2, 3, 4, 5]));
  });

  it.skipIf(seconds === 0)(
    `answer the same, and as JSON.parse reads, for as long as told${seconds === 0 ? " (skipped: GUIDEVANE_FUZZ_SECONDS is not set)" : ""}`,
    () => {
      const random = seededRandom(seed);
      const pair = fleetOfAllKinds();
      const kinds: Record<string, number> = {};
      const untilMs = performance.now() + seconds * 1000;
      let bodies = 0;
      let bytes = 0;
      for (; bodies % 64 !== 0 || performance.now() < untilMs; bodies++) {
        if (bodies % 100 === 0) shake(random, pair);
        const body: FixtureBody = randomLongBody(random);
        const twinsWrong = compareTwins(random, pair, body.bytes).wrong;
        const { kind, wrong = twinsWrong } = compareWithParse(body);
        if (wrong !== null) expect.fail(`seed ${seed}, body ${bodies}: ${wrong}: ${shownBody(body.bytes)}`);
        kinds[kind] = (kinds[kind] ?? 0) + 1;
        bytes += body.bytes.length;
      }
      expect(pair[1].registry.state.moves).toEqual(pair[0].registry.state.moves);
      console.log(`${bodies} bodies, ${(bytes / 1e6).toFixed(0)} MB, seed ${seed}: ${JSON.stringify(kinds)}`);
    },
    (seconds + 60) * 1000,
  );
});
