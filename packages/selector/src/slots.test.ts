import { GuidevaneError } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { STATE, STATE_HEALTHY } from "./router.ts";
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
    registry.state.engines[slot] = STATE.out;
    registry.state.inFlight[row + slot] = 7;
    registry.releaseEngine(slot);
    expect(registry.holdEngine("b")).toBe(slot);
    expect(registry.state.engines[slot]).toBe(STATE_HEALTHY);
    expect(registry.state.inFlight[row + slot]).toBe(0);
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
    expect(Array.from(registry.state.inFlight)).toEqual([0, 0, 0]);
  });

  it("keeps its memory where other threads can read it", () => {
    const { state } = new SlotRegistry({ engines: 3, cells: 2 });
    expect(state.engines.buffer).toBeInstanceOf(SharedArrayBuffer);
    expect(state.inFlight.buffer).toBeInstanceOf(SharedArrayBuffer);
    expect([state.engines.length, state.inFlight.length]).toEqual([3, 6]);
  });
});
