import { seededRandom } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { CHAT_BODY, nativeMissing } from "./driver.fixture.ts";
import { REASONS } from "./router.ts";
import { sameAnswers, shake, twins } from "./twins.fixture.ts";

const title = nativeMissing === null ? "twins" : `twins (skipped: ${nativeMissing})`;

const FIRST_BODY: Uint8Array = Buffer.from('{"messages":[]}');

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
        if (!sameAnswers(ts.out, native.out)) expect.fail(`ring ${ring}, key ${number}: ${ts.out} and ${native.out}`);
        if (key % 10 === 0) reasons.set(ts.reason, (reasons.get(ts.reason) ?? 0) + 1);
      }
      expect(native.registry.state.moves).toEqual(ts.registry.state.moves);
    }
    // So that the test can't pass by seeing healthy rings alone.
    expect([...reasons.keys()].sort()).toEqual([...REASONS.filter((reason) => reason !== "probe")].sort());
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
