import { describe, expect, it } from "vitest";
import { Level } from "./level.ts";

const means = (level: Level) => [level.fast.perSecond, level.recent.perSecond, level.long.perSecond];

describe("a gateway's means of arrivals", () => {
  it("are the rate at once when arrivals are even", () => {
    const level = new Level();
    level.add(50, 1000);
    expect(means(level)).toEqual([50, 50, 50]);
    for (let i = 0; i < 100; i++) level.add(50, 1000);
    for (const mean of means(level)) expect(mean).toBeCloseTo(50, 9);
  });

  it("begin with the first whole window of traffic, whatever the empty and the half one before it held", () => {
    const level = new Level();
    for (let i = 0; i < 5; i++) level.add(0, 1000);
    expect(means(level)).toEqual([0, 0, 0]);
    level.add(7, 1000);
    expect(means(level)).toEqual([7, 7, 7]);
    level.add(30, 1000);
    expect(means(level)).toEqual([30, 30, 30]);
    level.add(40, 1000);
    for (const mean of means(level)) expect(mean).toBeCloseTo(35, 9);
  });

  it("count per second, whatever the window", () => {
    const level = new Level();
    level.add(50, 250);
    expect(means(level)).toEqual([200, 200, 200]);
  });

  it("remember 5 s, 30 s and all of ten minutes", () => {
    const level = new Level();
    for (let i = 0; i < 601; i++) level.add(100, 1000);
    for (let i = 0; i < 5; i++) level.add(98, 1000);
    expect(level.fast.perSecond).toBeCloseTo(98 + 2 * Math.exp(-1), 1);
    for (let i = 0; i < 25; i++) level.add(98, 1000);
    expect(level.recent.perSecond).toBeCloseTo(98 + 2 * Math.exp(-1), 1);
    expect(level.long.perSecond).toBeCloseTo(100 - (2 * 30) / 630, 1);
  });

  it("let the recent one fall in 10 s where the fall is beyond chance", () => {
    const level = new Level();
    for (let i = 0; i < 120; i++) level.add(200, 1000);
    for (let i = 0; i < 12; i++) level.add(0, 1000);
    expect(level.recent.perSecond).toBeLessThan(200 * Math.exp(-1));
    expect(level.recent.perSecond).toBeGreaterThan(200 * Math.exp(-1.25));
  });

  it("forget what was before a jump, or before a change", () => {
    const level = new Level();
    for (let i = 0; i < 300; i++) level.add(100, 1000);
    for (let i = 0; i < 10; i++) level.add(200, 1000);
    level.restart();
    expect(level.long.perSecond).toBe(level.recent.perSecond);
    expect(level.long.overS).toBe(30);
    level.jump();
    expect(means(level)).toEqual([level.fast.perSecond, level.fast.perSecond, level.fast.perSecond]);
    expect(level.recent.overS).toBe(5);
  });
});
