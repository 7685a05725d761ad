import { setTimeout as delay } from "node:timers/promises";
import type { Fleet } from "@guidevane/core";
import type { DriveReport } from "@guidevane/simulator";
import type { Command } from "commander";
import { parseCount } from "./address.ts";
import { badUsage } from "./exit-code.ts";
import { knownIn } from "./known-in.ts";
import { tellReady, untilStopped } from "./process-life.ts";
import { readFleet } from "./read-fleet.ts";
import { showTable } from "./table.ts";

interface DriveFlags {
  fleet: string;
  gateway: string[];
  seed: string;
  every: string;
  seconds?: string;
  json?: true;
}

export function addDrive(program: Command): void {
  program
    .command("drive")
    .description("drive a fleet file's demand through its gateways and measure, round trips of the network file added")
    .requiredOption("--fleet <file>", "fleet file: its demandRps is what is driven")
    .requiredOption("--gateway <cluster=url...>", "a cluster's gateway; once for each")
    .option("--seed <n>", "seed of arrivals and conversations", "1")
    .option("--every <s>", "seconds between reports", "5")
    .option("--seconds <n>", "end after this long (default: until stopped)")
    .option("--json", "print each report as one line of JSON")
    .action((flags: DriveFlags) => drive(flags));
}

async function drive(flags: DriveFlags): Promise<void> {
  const fleet = await readFleet(flags.fleet);
  const gateways = parseGateways(fleet, flags.gateway);
  const seed = parseCount("--seed", flags.seed);
  const everyMs = parseSeconds("--every", flags.every);
  const lastMs = flags.seconds === undefined ? null : parseSeconds("--seconds", flags.seconds);
  const { startDrive } = await import("@guidevane/simulator");
  const stopped = untilStopped();
  const running = startDrive({ fleet, gateways, seed });
  tellReady();
  const print = () => {
    const report = running.report();
    process.stdout.write(flags.json ? `${JSON.stringify(report)}\n` : showReport(report));
  };
  const timer = setInterval(print, everyMs);
  await (lastMs === null ? stopped : Promise.race([stopped, delay(lastMs)]));
  clearInterval(timer);
  await running.stop();
  print();
}

/** `CLUSTER=URL` each. @throws GuidevaneError `bad_usage` */
function parseGateways(fleet: Fleet, pairs: readonly string[]): Map<string, string> {
  return new Map(
    pairs.map((pair) => {
      const at = pair.indexOf("=");
      const [cluster, url] = [pair.slice(0, at), pair.slice(at + 1)];
      if (at < 1 || !URL.canParse(url)) badUsage("--gateway", pair, "must be CLUSTER=URL");
      knownIn("--gateway", cluster, "a cluster", fleet.clusters);
      return [cluster, url] as const;
    }),
  );
}

/** Seconds above 0 as ms. @throws GuidevaneError `bad_usage` */
function parseSeconds(flag: string, text: string): number {
  const seconds = /^\d{1,9}(\.\d+)?$/.test(text) ? Number(text) : 0;
  return seconds > 0 ? seconds * 1000 : badUsage(flag, text, "must be a number of seconds above 0");
}

function showReport({ elapsedMs, cells, inFlight, lateMs }: DriveReport): string {
  const rows = cells.map((cell) => {
    const failed = Object.values(cell.failures).reduce((sum, count) => sum + count, 0);
    return [
      cell.cluster,
      cell.class,
      (cell.sent / (elapsedMs / 1000)).toFixed(1),
      showMs(cell.meanMs),
      showMs(cell.p95Ms),
      showMs(cell.p99Ms),
      showMs(cell.networkMs),
      String(failed),
      Object.entries(cell.engines)
        .sort()
        .map(([engine, count]) => `${engine} ${((100 * count) / cell.answered).toFixed(1)} %`)
        .join("  ") || "-",
      Object.entries(cell.failures)
        .map(([failure, count]) => `${count} × ${failure}`)
        .join("; "),
    ];
  });
  const head = [
    "cluster",
    "class",
    "sent/s",
    "mean ms",
    "p95",
    "p99",
    "of it network",
    "failed",
    "went to",
    "failures",
  ];
  return `${showTable(head, rows)}${inFlight} under way; the driver was at most ${lateMs.toFixed(0)} ms late\n\n`;
}

function showMs(value: number | null): string {
  return value === null ? "–" : value.toFixed(0);
}
