import { MessageChannel, receiveMessageOnPort } from "node:worker_threads";
import { describe, expect, it } from "vitest";
import { type PackedSnapshot, packSnapshot, unpackSnapshot } from "./packed-snapshot.ts";
import { planColumns } from "./plan-columns.ts";
import type { ClusterSnapshot, SnapshotCell, SnapshotEngine } from "./snapshot.ts";

const engine: SnapshotEngine = {
  ...{ url: "http://é:8000/v1", kind: "vllm", region: "r", models: ["m", "n"], capabilities: ["tools"] },
  ...{ residency: null, compute: "h100", maxContextTokens: 4096, replicas: 3, adminState: "active" },
  health: { path: "/health", pathIsDefault: true, port: null, intervalMs: 2000 },
  ...{ rttMs: 4, plannedFactor: 0.75, plannedReady: 2, loadWps: 5.5, capacityWps: 10, priceMs: -1.5, worthMs: 7 },
};
const latency = { ttftMs: [[0, 10] as [number, number]], tbotMs: [[0, 1] as [number, number]] };
const engines: ClusterSnapshot["engines"] = {
  b: engine,
  // A name that a plain object would put first.
  "7": { ...engine, loadWps: 1, maxStreams: 9 },
  a: { ...engine, rttMs: 40, latency: { ...latency, prefillMsPerTok: 0.1, promptTokens: 512 } },
};
const cell: SnapshotCell = {
  ...{ cluster: "east", class: "chat", demandRps: 3, work: 1.5, engines: ["a", "7"], weights: [0.25, 0.75] },
  expectedMs: [900, 800],
  addends: [
    [1, 2, 3, 4, 5],
    [6, 7, 8, 9, 10],
  ],
  reserves: [{ engine: "b", spareWps: 2, reducedCostMs: 0.5 }],
  ...{ shed: 0.125, priceMs: 12, streamLimit: 40, ring: "AAE=" },
};
const bound = { objectiveMs: 1, lowerBoundMs: 0.5, gapMs: 0.5, gap: 0.5 };
const requestClass: ClusterSnapshot["classes"][string] = {
  ...{ model: "m", priority: 1, work: 1.5, promptTokens: 512, outputTokens: 256, firstTokenMs: null },
  needs: { capabilities: [], residency: [], compute: [], contextTokens: 0, networkMs: null },
};
const snapshot: ClusterSnapshot = {
  ...{ version: 4, epoch: 2, madeAt: "2026-01-01T00:00:00.000Z", cluster: "east", gateways: 2, engines },
  classes: { chat: requestClass, code: requestClass, idle: requestClass },
  aliases: { fast: "m" },
  cells: [
    cell,
    { ...cell, class: "idle", engines: [], weights: [], expectedMs: [], addends: [], reserves: [] },
    { ...cell, class: "code", engines: ["b"], weights: [1], expectedMs: [1], addends: [[0, 0, 0, 0, 1]], reserves: [] },
    { ...cell, class: "pinned", pin: { weights: { a: 1 }, until: "2027-01-01T00:00:00.000Z" } },
  ],
  certificate: { ...bound, churnFree: bound, expectedLatencyMs: 800 },
};

/** As another thread gets it. */
function sent(packed: PackedSnapshot): PackedSnapshot {
  const { port1, port2 } = new MessageChannel();
  port1.postMessage(packed);
  const { message } = receiveMessageOnPort(port2) as { message: PackedSnapshot };
  port1.close();
  return message;
}

/** What can be read of `view` under the keys of `like`, and whether it has none beside them. */
function readLike<T extends object>(view: T, like: T): Record<string, unknown> {
  return Object.fromEntries(Object.keys(like).map((key) => [key, view[key as keyof T]]));
}

describe("a packed snapshot", () => {
  const view = unpackSnapshot(sent(packSnapshot(snapshot)));

  it("is the same snapshot on another thread, but for its rings", () => {
    const { engines: viewed, cells, ...head } = view;
    const { engines: _engines, cells: _cells, ...expected } = snapshot;
    expect(head).toEqual(expected);
    expect(Object.keys(viewed)).toEqual(Object.keys(engines));
    for (const [id, like] of Object.entries(engines)) expect(readLike(viewed[id]!, like)).toEqual(like);
    expect(cells).toHaveLength(snapshot.cells.length);
    for (const [at, like] of snapshot.cells.entries())
      expect(readLike(cells[at]!, like)).toEqual({ ...like, ring: "" });
  });

  it("says of what a snapshot leaves out that it is not there", () => {
    expect(view.engines.b!.maxStreams).toBeUndefined();
    expect(view.engines.b!.latency).toBeUndefined();
    expect(view.cells[0]!.pin).toBeUndefined();
    expect(Object.hasOwn(view.engines, "zz")).toBe(false);
  });

  it("has the columns of the snapshot that it was made from", () => {
    expect(planColumns(view)).toEqual(planColumns(snapshot));
    const { pairAt, pairEngine, weights, maxStreams } = planColumns(view);
    expect([...pairAt]).toEqual([0, 2, 2, 3, 5]);
    expect([...pairEngine].map((at) => Object.keys(engines)[at])).toEqual(["a", "7", "b", "a", "7"]);
    expect([...weights]).toEqual([0.25, 0.75, 1, 0.25, 0.75]);
    expect([...maxStreams]).toEqual([9, Number.NaN, Number.NaN]);
  });

  it("is unpacked once a thread", () => {
    const packed = packSnapshot(snapshot);
    expect(unpackSnapshot(packed)).toBe(unpackSnapshot(packed));
  });
});
