import type { Random } from "@guidevane/core";
import { loadNative } from "@guidevane/native";
import { createRouterFactory } from "./create-router.ts";
import { Driver } from "./driver.fixture.ts";
import { HEAD, OUT_WORDS, TRIED_MAX } from "./router.ts";
import { countStreams, STATE, STATE_HEALTHY } from "./shared-state.ts";
import { SlotRegistry } from "./slots.ts";
import { makeSnapshot } from "./snapshot.fixture.ts";

/** Both routers, each over a memory of its own: what one remembers, the other must too. */
export function twins(snapshot: Parameters<typeof makeSnapshot>): [Driver, Driver] {
  const made = makeSnapshot(...snapshot);
  const registry = () => new SlotRegistry({ engines: 64, cells: 8, threads: 3, moves: 32 });
  return [
    new Driver(createRouterFactory("ts"), made, registry()),
    new Driver(createRouterFactory("native", loadNative), made, registry()),
  ];
}

export function sameAnswers(a: Uint32Array, b: Uint32Array): boolean {
  for (let i = 0; i < OUT_WORDS; i++) if (a[i] !== b[i]) return false;
  return true;
}

/** Any health, load and head: also such as no guard would write. */
export function shake(random: Random, [ts, native]: readonly [Driver, Driver]): void {
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
