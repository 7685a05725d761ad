import { Counter, Histogram, Registry } from "prom-client";
import { expect, test } from "vitest";
import { Spread, Tally } from "./fast-metrics.ts";
import { sumMetrics } from "./metric-text.ts";
import { addEnded, createMetrics } from "./metrics.ts";

/** Sorted: the order in which labels first came says nothing. */
async function linesOf(registry: Registry): Promise<string[]> {
  return (await sumMetrics([await registry.getMetricsAsJSON()])).split("\n").sort();
}
const buckets = [0.001, 0.1, 2];

test("A scrape shows the same text as prom-client's own metrics.", async () => {
  const [own, theirs] = [new Registry(), new Registry()];
  const tally = new Tally({ name: "t", help: "t", labelNames: ["class", "kind"], registers: [own] });
  const counter = new Counter({ name: "t", help: "t", labelNames: ["class", "kind"], registers: [theirs] });
  const one = new Tally({ name: "o", help: "o", labelNames: ["class"], registers: [own] });
  const oneTheirs = new Counter({ name: "o", help: "o", labelNames: ["class"], registers: [theirs] });
  const spread = new Spread({ name: "s", help: "s", labelNames: ["class"], buckets, registers: [own] });
  const histogram = new Histogram({ name: "s", help: "s", labelNames: ["class"], buckets, registers: [theirs] });
  const bare = new Spread({ name: "b", help: "b", buckets, registers: [own] });
  const bareTheirs = new Histogram({ name: "b", help: "b", buckets, registers: [theirs] });
  expect(await linesOf(own)).toEqual(await linesOf(theirs));

  for (const [requestClass, kind, by] of [
    ["x", "prompt", 3],
    ["y", "prompt", 1],
    ["x", "cached", 0],
    ["x", "prompt", 4],
  ] as const) {
    tally.inc(requestClass, kind, by);
    counter.inc({ class: requestClass, kind }, by);
    one.inc(requestClass);
    oneTheirs.inc({ class: requestClass });
  }
  for (const value of [0, 0.001, 0.0011, 1, 2, 3]) {
    spread.add(value > 1 ? "x" : "y", value);
    histogram.observe({ class: value > 1 ? "x" : "y" }, value);
    bare.add("", value);
    bareTheirs.observe(value);
  }
  for (let scrape = 0; scrape < 2; scrape++) expect(await linesOf(own)).toEqual(await linesOf(theirs));
});

test("Threads that ended go on counting in one sum, and what they held does not.", async () => {
  const thread = createMetrics();
  thread.requests.inc("m", "success", 3);
  thread.ttftSeconds.add("m", 0.2);
  thread.queueDepth.inc({ class: "m" }, 5);
  const figures = await thread.registry.getMetricsAsJSON();
  const ended = await addEnded(await addEnded([], figures), figures);
  const text = await sumMetrics([ended]);
  expect(text).toContain('guidevane_requests_total{class="m",outcome="success"} 6');
  expect(text).toContain('guidevane_ttft_seconds_count{class="m"} 2');
  expect(text).not.toContain("guidevane_queue_depth{");
  expect(ended.filter(({ name }) => name === "guidevane_requests_total")).toHaveLength(1);
});
