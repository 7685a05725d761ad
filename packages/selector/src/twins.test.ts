import { type Random, seededRandom } from "@guidevane/core";
import { loadNative } from "@guidevane/native";
import { describe, expect, it } from "vitest";
import { randomBody } from "./body.fixture.ts";
import { createRouterFactory } from "./create-router.ts";
import { CHAT_BODY, Driver, nativeMissing } from "./driver.fixture.ts";
import { HEAD, OUT_WORDS, PATH, REASONS, TRIED_MAX } from "./router.ts";
import { countStreams, STATE, STATE_HEALTHY } from "./shared-state.ts";
import { SlotRegistry } from "./slots.ts";
import { makeSnapshot } from "./snapshot.fixture.ts";

const title = nativeMissing === null ? "twins" : `twins (skipped: ${nativeMissing})`;

/** Both routers, each over a memory of its own: what one remembers, the other must too. */
function twins(snapshot: Parameters<typeof makeSnapshot>): [Driver, Driver] {
  const made = makeSnapshot(...snapshot);
  const registry = () => new SlotRegistry({ engines: 64, cells: 8, threads: 3, moves: 32 });
  return [
    new Driver(createRouterFactory("ts"), made, registry()),
    new Driver(createRouterFactory("native", loadNative), made, registry()),
  ];
}

const FIRST_BODY: Uint8Array = Buffer.from('{"messages":[]}');

function same(a: Uint32Array, b: Uint32Array): boolean {
  for (let i = 0; i < OUT_WORDS; i++) if (a[i] !== b[i]) return false;
  return true;
}

/** Any health, load and head: also such as no guard would write. */
function shake(random: Random, [ts, native]: readonly [Driver, Driver]): void {
  const ids = [...ts.table.engineSlots.keys()];
  for (const id of ids) {
    const kind = random();
    const factor = kind < 0.5 ? STATE_HEALTHY : Math.floor(random() * 65_536);
    const flags = [STATE.out, STATE.draining, STATE.cooling, STATE.outByProbe].filter(() => random() < 0.15);
    const word = flags.reduce((bits, flag) => bits | flag, factor) >>> 0;
    const thread = Math.floor(random() * 3);
    const streams = random() < 0.5 ? Math.floor(random() * 6) : Math.floor(random() * 200);
    for (const driver of [ts, native]) {
      driver.setState(id, word);
      const row = driver.table.inFlightRows.find((each) => each >= 0)!;
      countStreams(driver.registry.state, thread, row, driver.slot(id), streams - driver.streams(id, row));
    }
  }
  const tried = random() < 0.7 ? 0 : Math.floor(random() * (TRIED_MAX + 2));
  const words = ts.head.words;
  words[HEAD.triedCount] = tried;
  for (let i = 0; i < TRIED_MAX; i++) words[HEAD.tried + i] = Math.floor(random() * ids.length);
  words[HEAD.tenant] = random() < 0.5 ? 0 : Math.floor(random() * 2 ** 32);
  words[HEAD.placement] = random() < 0.5 ? 1 : 0;
  words[HEAD.followed] = random() < 0.1 ? Math.floor(random() * (ids.length + 2)) : 0;
  words[HEAD.nowS]! += Math.floor(random() * 400);
  native.head.words.set(words);
}

describe.skipIf(nativeMissing !== null)(title, () => {
  it("answer and remember the same to the last bit on 60,000 triples of key, ring and health", () => {
    const random = seededRandom(11);
    const reasons = new Map<string, number>();
    for (let ring = 0; ring < 60; ring++) {
      const count = 1 + Math.floor(random() * 24);
      const engines = Array.from({ length: count }, (_, i) => ({
        id: `e${Math.floor(random() * 1e9)}-${i}`,
        weight: i > 0 && random() < 0.2 ? 0 : random() + 1e-3,
        expectedMs: random() < 0.1 ? 0 : random() * 5000,
        spareWps: random() < 0.2 ? 0 : random() * 50,
      }));
      const pair = twins([
        [{ class: "chat", engines }],
        { slots: 2 ** (6 + Math.floor(random() * 7)), bootstrap: random() < 0.15 },
      ]);
      const [ts, native] = pair;
      for (let key = 0; key < 1000; key++) {
        if (key % 50 === 0) shake(random, pair);
        // Few enough that keys come again.
        const number = Math.floor(random() * 300);
        const body = random() < 0.5 ? FIRST_BODY : undefined;
        ts.routeKey(number, body);
        native.routeKey(number, body);
        if (!same(ts.out, native.out)) expect.fail(`ring ${ring}, key ${number}: ${ts.out} and ${native.out}`);
        if (key % 10 === 0) reasons.set(ts.reason, (reasons.get(ts.reason) ?? 0) + 1);
      }
      expect(native.registry.state.moves).toEqual(ts.registry.state.moves);
    }
    // So that the test can't pass by seeing healthy rings alone.
    expect([...reasons.keys()].sort()).toEqual([...REASONS.filter((reason) => reason !== "probe")].sort());
  }, 120_000);

  it("answer the same on 10,000 bodies of every kind", () => {
    const random = seededRandom(12);
    const engines = [
      { id: "a", weight: 0.5, definition: { capabilities: ["tools" as const], residency: "eu" } },
      { id: "b", weight: 0.3, definition: { capabilities: ["vision" as const], maxContextTokens: 300 } },
      { id: "c", weight: 0.2, definition: { maxContextTokens: 100_000 } },
      { id: "r", weight: 0 },
    ];
    const needs = { capabilities: [], residency: [], compute: [], contextTokens: 0, networkMs: null };
    const pair = twins([
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
    const [ts, native] = pair;
    const statuses = new Set<number>();
    for (let round = 0; round < 10_000; round++) {
      if (round % 100 === 0) shake(random, pair);
      const words = ts.head.words;
      words[HEAD.path] = Math.floor(random() * Object.keys(PATH).length);
      words[HEAD.sessionKeyBytes] = random() < 0.1 ? Math.floor(random() * 64) : 0;
      words[HEAD.residency] = random() < 0.1 ? Math.floor(random() * 4) : 0;
      words[HEAD.classNamed] = random() < 0.1 ? Math.floor(random() * 6) : 0;
      native.head.words.set(words);
      const { bytes } = randomBody(random);
      const expected = ts.router.route(ts.head, bytes, ts.out);
      const found = native.router.route(native.head, bytes, native.out);
      statuses.add(expected);
      if (found !== expected || !same(ts.out, native.out))
        expect.fail(`round ${round}: ${expected} ${ts.out} and ${found} ${native.out}: ${Buffer.from(bytes)}`);
    }
    expect(statuses.size).toBe(7);
  }, 120_000);

  it("answer the same on bodies larger than any buffer of theirs", () => {
    const [ts, native] = twins([
      [
        {
          class: "chat",
          engines: [
            { id: "a", weight: 1 },
            { id: "b", weight: 1 },
          ],
        },
      ],
    ]);
    for (const length of [65_535, 65_536, 65_537, 3_000_000]) {
      for (const tail of ['"}', '"', '\u0001"}', '\\u0041"}', '"}]']) {
        const body = Buffer.from(`{"model":"m-chat","prompt":"${"x".repeat(length)}${tail}`);
        expect(native.router.route(native.head, body, native.out)).toBe(ts.router.route(ts.head, body, ts.out));
        expect(Array.from(native.out)).toEqual(Array.from(ts.out));
      }
    }
  });

  it("read a body wherever it stands in its memory", () => {
    const [ts, native] = twins([
      [
        {
          class: "chat",
          engines: [
            { id: "a", weight: 1 },
            { id: "b", weight: 1 },
          ],
        },
      ],
    ]);
    const memory = new Uint8Array(CHAT_BODY.length + 16).fill(0x7d);
    for (let offset = 0; offset < 16; offset++) {
      memory.set(CHAT_BODY, offset);
      const body = memory.subarray(offset, offset + CHAT_BODY.length);
      expect(native.router.route(native.head, body, native.out)).toBe(0);
      expect(ts.router.route(ts.head, body, ts.out)).toBe(0);
      expect(Array.from(native.out)).toEqual(Array.from(ts.out));
      memory.fill(0x7d);
    }
  });
});
