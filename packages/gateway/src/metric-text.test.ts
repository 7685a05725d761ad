import { AggregatorRegistry } from "prom-client";
import { expect, test } from "vitest";
import { sumMetrics, writeMetrics } from "./metric-text.ts";
import { createMetrics, figuresOf, type MetricFigures } from "./metrics.ts";

/** Of a thread that has counted this and that, times `by`. */
function counted(by: number, engines: number): Promise<MetricFigures> {
  const metrics = createMetrics();
  metrics.requests.inc('m "x"', "success", by);
  metrics.requests.inc("m\\n\n", "fault", 2 * by);
  for (let engine = 0; engine < engines; engine++) {
    metrics.attempts.inc(`e${engine}`, engine % 2 === 0 ? "success" : "fault", by);
    metrics.penaltyFactor.set({ engine: `e${engine}` }, engine / 7);
  }
  for (const value of [0.0004, 0.3, 400]) metrics.ttftSeconds.add("m", by * value);
  metrics.routeSeconds.add("", 1e-7);
  metrics.retryBudgetTokens.set(by === 1 ? Number.POSITIVE_INFINITY : 0.5);
  metrics.snapshotVersion.set(Number.NaN);
  return figuresOf(metrics.registry);
}

test("A scrape's text is what prom-client makes of the same figures.", async () => {
  for (const figures of [[await counted(1, 3)], [await counted(2, 3), await counted(3, 5)], []])
    expect(await sumMetrics(figures)).toBe(await AggregatorRegistry.aggregate([...figures]).metrics());
});

test("A thread's figures are those that its registry gives, and take a turn for each metric.", async () => {
  const { registry } = createMetrics();
  let turns = 0;
  const count = (): void => {
    turns += 1;
    next = setImmediate(count);
  };
  let next = setImmediate(count);
  const figures = await figuresOf(registry);
  clearImmediate(next);
  expect(figures).toEqual(await registry.getMetricsAsJSON());
  expect(turns).toBeGreaterThanOrEqual(figures.length - 1);
});

test("Many lines are written in parts.", async () => {
  const parts = writeMetrics([await counted(1, 1000)]);
  let yields = 0;
  while (parts.next().done !== true) yields += 1;
  // Two metrics with a line for each engine, which is looked at and then written.
  expect(yields).toBeGreaterThanOrEqual(Math.floor((2 * 2 * 1000) / 512));
});
