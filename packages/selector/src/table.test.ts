import { expect, it } from "vitest";
import { SlotRegistry } from "./slots.ts";
import { makeSnapshot } from "./snapshot.fixture.ts";
import { classWord, compileTable, residencyWord } from "./table.ts";
import { CELL, CLASS, CLASS_WORDS, HEADER, NO_CELL } from "./table-columns.ts";

const snapshot = makeSnapshot(
  [
    {
      class: "chat",
      engines: [
        { id: "a", weight: 0.75, definition: { residency: "eu" } },
        { id: "b", weight: 0.25 },
        { id: "r", weight: 0 },
      ],
    },
    { class: "other", engines: [{ id: "b", weight: 1 }] },
  ],
  { classes: { empty: {} }, slots: 64 },
);

function small(): SlotRegistry {
  return new SlotRegistry({ engines: 8, cells: 4 });
}

it("lists models and classes in the snapshot's order, and tells a header's words", () => {
  const { table } = compileTable(snapshot, small());
  expect(table.classes).toEqual(["empty", "chat", "other"]);
  expect(table.models).toEqual(["m-empty", "m-chat", "m-other"]);
  expect(table.residencies).toEqual(["eu"]);
  expect([classWord(table, "chat"), classWord(table, "gone")]).toEqual([2, 0]);
  expect([residencyWord(table, "eu"), residencyWord(table, "mars")]).toEqual([1, 2]);
  expect(table.inFlightRows).toEqual([-1, 0, 1]);
});

it("knows a model that an engine serves and no class names", () => {
  const made = makeSnapshot([{ class: "chat", engines: [{ id: "a", weight: 1, definition: { models: ["extra"] } }] }]);
  expect(compileTable(made, small()).table.models).toEqual(["m-chat", "extra"]);
});

it("puts a cell's ring, engines and reserves where its row says", () => {
  const { words, numbers, ring } = compileTable(snapshot, small()).table.columns;
  const classRow = (index: number) => words[HEADER.classAt]! + index * CLASS_WORDS;
  expect(words[classRow(0) + CLASS.cell]).toBe(NO_CELL);
  const cell = words[classRow(1) + CLASS.cell]!;
  expect([words[cell + CELL.slots], words[cell + CELL.engines], words[cell + CELL.reserves]]).toEqual([64, 2, 1]);
  const at = words[cell + CELL.ringAt]!;
  const owned = ring.subarray(at, at + 64);
  expect(owned.filter((owner) => owner === 0).length).toBe(48);
  const pairs = words[cell + CELL.numberAt]!;
  // Slots and slots × expected time of both, then the reserve's spare.
  expect(Array.from(numbers.subarray(pairs, pairs + 6))).toEqual([48, 48_000, 16, 16_000, 1, 1]);
});

it("holds its slots until released, once", () => {
  const registry = small();
  const [first, second] = [compileTable(snapshot, registry), compileTable(snapshot, registry)];
  const slot = first.table.engineSlots.get("a")!;
  first.release();
  first.release();
  expect(registry.slotOf("a")).toBe(slot);
  second.release();
  expect(registry.slotOf("a")).toBe(null);
});

it("lets go of all it took when a slot is missing", () => {
  const registry = new SlotRegistry({ engines: 2, cells: 4 });
  expect(() => compileTable(snapshot, registry)).toThrow(/all 2 engine slots/);
  expect([registry.slotOf("a"), registry.slotOf("b")]).toEqual([null, null]);
});
