import { describe, expect, it } from "vitest";
import type { Judged } from "./class-pace.ts";
import { ClassPaces, type PacedEngine } from "./class-paces.ts";

/** Keeps what it was told. */
class Told implements PacedEngine {
  readonly keepsPace = true;
  readonly all: { measure: string; x: number; beganMs: number }[] = [];

  paced(measure: "ttft" | "tbot", { x }: Judged, beganMs: number): void {
    this.all.push({ measure, x, beganMs });
  }
}

describe("the paces of all classes", () => {
  it("take a tick's times of an engine as one, their median, as old as the oldest", () => {
    const paces = new ClassPaces();
    const engines = new Map([
      ["a", new Told()],
      ["b", new Told()],
    ]);
    for (let tick = 0; tick < 3; tick++) {
      for (const id of engines.keys()) paces.observe("ttft", "chat", id, 10, 0);
      paces.judge(engines, 250 * tick);
    }
    for (const [beganMs, ratio] of [
      [40, 0.1],
      [30, 9],
      [50, 0.3],
    ] as const)
      paces.observe("ttft", "chat", "a", beganMs, ratio);
    paces.judge(engines, 1000);
    expect(engines.get("a")!.all.at(-1)).toEqual({ measure: "ttft", x: 0.3, beganMs: 30 });
    const { length } = engines.get("a")!.all;
    paces.judge(engines, 1250);
    expect(engines.get("a")!.all.length).toBe(length);
  });

  it("keep measures and classes apart", () => {
    const paces = new ClassPaces();
    const engines = new Map<string, Told>([["a", new Told()]]);
    for (let tick = 0; tick < 3; tick++) {
      for (const id of ["a", "b"]) {
        paces.observe("ttft", "chat", id, 0, 1);
        paces.observe("tbot", "chat", id, 0, 2);
      }
      paces.observe("ttft", "batch", "a", 0, 3);
      paces.judge(engines, 250 * tick);
    }
    expect([paces.usual("ttft", "chat", 500), paces.usual("tbot", "chat", 500)]).toEqual([1, 2]);
    expect(paces.usual("ttft", "batch", 500)).toBeNull();
    expect([paces.highest("ttft", "a"), paces.highest("ttft", "b"), paces.highest("tbot", "a")]).toEqual([3, 1, 2]);
    paces.forget("a");
    expect([paces.highest("ttft", "a"), paces.usual("ttft", "chat", 500)]).toEqual([null, null]);
  });

  it("keep nothing of engines that were forgotten, and know them again when they are back", () => {
    const paces = new ClassPaces();
    const engines = new Map<string, Told>();
    for (let tick = 0; tick < 50; tick++) {
      const id = `e${tick}`;
      engines.set(id, new Told());
      paces.observe("ttft", "chat", id, 0, 1);
      paces.judge(engines, 250 * tick);
      paces.forget(id);
    }
    expect(paces.known).toBe(0);
    for (let tick = 50; tick < 53; tick++) {
      paces.observe("ttft", "chat", "e0", 0, 2);
      paces.judge(engines, 250 * tick);
    }
    expect(paces.highest("ttft", "e0")).toBe(2);
  });
});
