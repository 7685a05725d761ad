import { GuidevaneError } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { countStreams, STATE, STATE_HEALTHY, setEngine, streamsAt, streamsOfCell } from "./shared-state.ts";
import { SlotRegistry } from "./slots.ts";

describe("SlotRegistry", () => {
  it("gives an engine one slot, however often it is held", () => {
    const registry = new SlotRegistry({ engines: 4, cells: 2 });
    const slot = registry.holdEngine("a");
    expect(registry.holdEngine("a")).toBe(slot);
    expect(registry.holdEngine("b")).not.toBe(slot);
    expect([registry.engineAt(slot), registry.slotOf("a")]).toEqual(["a", slot]);
  });

  it("starts a slot healthy and without streams, also one that another engine left", () => {
    const registry = new SlotRegistry({ engines: 1, cells: 2 });
    const slot = registry.holdEngine("a");
    const row = registry.holdCell("cell");
    expect(registry.state.engines[slot]).toBe(STATE_HEALTHY);
    setEngine(registry.state, slot, STATE.out);
    countStreams(registry.state, 0, row, slot, 7);
    registry.releaseEngine(slot);
    expect(registry.holdEngine("b")).toBe(slot);
    expect(registry.state.engines[slot]).toBe(STATE_HEALTHY);
    expect([streamsAt(registry.state, row, slot), streamsOfCell(registry.state, row)]).toEqual([0, 0]);
  });

  it("does not give away a slot while one of those who took it holds it", () => {
    const registry = new SlotRegistry({ engines: 1, cells: 1 });
    const slot = registry.holdEngine("a");
    registry.holdEngine("a");
    registry.releaseEngine(slot);
    expect(() => registry.holdEngine("b")).toThrow(/all 1 engine slots/);
    registry.releaseEngine(slot);
    expect(registry.slotOf("a")).toBe(null);
    expect(registry.holdEngine("b")).toBe(slot);
    expect(registry.slotOf("a")).toBe(null);
  });

  it("gives an engine that comes back its old slot and state while nobody took it", () => {
    const registry = new SlotRegistry({ engines: 2, cells: 1 });
    const slot = registry.holdEngine("a");
    registry.state.engines[slot] = STATE.cooling;
    registry.releaseEngine(slot);
    registry.holdEngine("b");
    expect(registry.holdEngine("a")).toBe(slot);
    expect(registry.state.engines[slot]).toBe(STATE.cooling);
  });

  it("gives away the slot that was left longest ago", () => {
    const registry = new SlotRegistry({ engines: 3, cells: 1 });
    const [a, b, c] = ["a", "b", "c"].map((id) => registry.holdEngine(id));
    registry.releaseEngine(b!);
    registry.releaseEngine(a!);
    registry.releaseEngine(c!);
    expect(registry.holdEngine("d")).toBe(b);
    expect(registry.holdEngine("a")).toBe(a);
  });

  it("counts cells as it counts engines, and starts a row at zero", () => {
    const registry = new SlotRegistry({ engines: 3, cells: 1 });
    const row = registry.holdCell("one");
    registry.state.inFlight.fill(9);
    expect(() => registry.holdCell("two")).toThrow(GuidevaneError);
    registry.holdCell("one");
    registry.releaseCell(row);
    registry.releaseCell(row);
    expect(registry.holdCell("two")).toBe(row);
    expect(Array.from(registry.state.inFlight)).toEqual([0, 0, 0, 0]);
  });

  it("keeps its memory where other threads can read it", () => {
    const { state } = new SlotRegistry({ engines: 3, cells: 2, threads: 4, moves: 100 });
    const { engines, version, inFlight, moves } = state;
    for (const each of [engines, version, inFlight, moves]) expect(each.buffer).toBeInstanceOf(SharedArrayBuffer);
    expect([engines.length, inFlight.length, moves.length]).toEqual([3, 4 * 2 * 4, 2 * 128]);
    expect(() => new SlotRegistry({ engines: 65_535 })).toThrow(/at most 65534/);
  });
});
