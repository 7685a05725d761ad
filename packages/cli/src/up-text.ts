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
  if (measure.lateMs > BUSY_MS)
    lines.push(
      `note              the driver was up to ${measure.lateMs.toFixed(0)} ms late: this machine is busy, and what it measures is too long`,
    );
  return `${lines.join("\n")}\n`;
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

function showLatency({ expectedMs, measuredMs, answered, seconds }: UpMeasure): string {
  const measured =
    measuredMs === null
      ? "nothing is driven"
      : `${measuredMs.toFixed(0)} ms measured over ${answered} requests in ${seconds.toFixed(0)} s`;
  return `optimum           ${expectedMs.toFixed(0)} ms mean latency, round trips included; ${measured}`;
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

function showFailures({ cells }: UpMeasure): string {
  return cells
    .flatMap((cell) => Object.entries(cell.failures).map(([why, count]) => `${count} × ${why} at ${cell.cluster}`))
    .join("; ");
}
