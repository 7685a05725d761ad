import type { NearestOnly } from "@guidevane/optimizer";
import { showTable } from "./table.ts";
import type { UpMeasure } from "./up-measure.ts";

/** The table and the lines that `guidevane up` prints once traffic has settled. */
export function showUp(measure: UpMeasure, nearest: NearestOnly, router: string): string {
  const engines = [...new Set(measure.cells.flatMap((cell) => [...cell.engines.keys()]))];
  const driven = measure.measuredMs !== null;
  const rows = measure.cells.map((cell) => [
    cell.cluster,
    cell.class,
    cell.demandRps.toFixed(1),
    ...engines.map((id) => showShare(cell.engines.get(id))),
    cell.meanMs === null ? "–" : cell.meanMs.toFixed(0),
  ]);
  const what = driven ? "measured share (planned weight)" : "planned weight";
  const lines = [
    `Where each cluster's traffic goes: ${what}, %`,
    "",
    showTable(["cluster", "class", "requests/s", ...engines, "mean ms"], rows),
    showLatency(measure),
    showNearest(nearest),
    `certificate       within ${showPercent(measure.gap)} of the best that any weights could give (snapshot ${measure.version})`,
    `router            ${router}`,
  ];
  if (measure.failed > 0) lines.push(`failed            ${measure.failed} requests: ${showFailures(measure)}`);
  if (refused(measure))
    lines.push(
      "note              a gateway refuses (429, 503) what its engines have no room for; on a slow machine start with a smaller --scale",
    );
  if (measure.lateMs > BUSY_MS)
    lines.push(
      `note              the driver was up to ${measure.lateMs.toFixed(0)} ms late: other work keeps this machine busy, and the times measured may be off`,
    );
  return `${lines.join("\n")}\n`;
}

/** The line that follows when the run has gone on for longer. */
export function showLater(measure: UpMeasure): string {
  const failed = measure.failed === 0 ? "" : `; failed ${measure.failed}: ${showFailures(measure)}`;
  return `${`after ${measure.seconds.toFixed(0)} s`.padEnd(18)}${showMeasured(measure)}, beside the optimum's ${measure.expectedMs.toFixed(0)} ms${failed}`;
}

/** Timers and garbage collection alone make a driver some 10–30 ms late. */
const BUSY_MS = 60;

/** A request to try, by one gateway: a streamed chat completion. */
export function curlLine(gatewayUrl: string, model: string): string {
  const body = JSON.stringify({ model, stream: true, max_tokens: 32, messages: [{ role: "user", content: "Hello" }] });
  return `curl -N -i ${gatewayUrl}/v1/chat/completions -H 'content-type: application/json' -d '${body}'`;
}

function showShare(engine: { weight: number; share: number | null } | undefined): string {
  if (engine === undefined) return "–";
  const weight = (100 * engine.weight).toFixed(1);
  return engine.share === null ? weight : `${(100 * engine.share).toFixed(1)} (${weight})`;
}

function showLatency(measure: UpMeasure): string {
  const measured =
    measure.measuredMs === null
      ? "nothing is driven"
      : `${showMeasured(measure)} in ${measure.seconds.toFixed(0)} s; queues began empty`;
  return `optimum           ${measure.expectedMs.toFixed(0)} ms mean latency, round trips included; ${measured}`;
}

function showMeasured({ measuredMs, plusMinusMs, answered }: UpMeasure): string {
  const spread = plusMinusMs === null ? "" : ` ± ${plusMinusMs.toFixed(0)}`;
  const mean = measuredMs === null ? "nothing" : `${measuredMs.toFixed(0)}${spread} ms`;
  return `${mean} measured over ${answered.toLocaleString("en-US")} requests`;
}

function showNearest(nearest: NearestOnly): string {
  switch (nearest.kind) {
    case "bounded":
      return `nearest-only      ${nearest.meanMs.toFixed(0)} ms`;
    case "none":
      return `nearest-only      ${nearest.message}`;
    case "unbounded": {
      const who = nearest.over.map(
        ({ engine, loadWps, capacityWps }) =>
          `${engine} would stand at ${((100 * loadWps) / capacityWps).toFixed(0)} %`,
      );
      return `nearest-only      unbounded: ${who.join(", ")}`;
    }
  }
}

function showPercent(part: number): string {
  return `${(100 * part).toFixed(2)} %`;
}

function refused({ cells }: UpMeasure): boolean {
  return cells.some(({ failures }) => Object.keys(failures).some((why) => /^http (429|503)/.test(why)));
}

function showFailures({ cells }: UpMeasure): string {
  return cells
    .flatMap((cell) =>
      Object.entries(cell.failures).map(([why, count]) => `${count} × ${why} at gateway ${cell.cluster}`),
    )
    .join("; ");
}
