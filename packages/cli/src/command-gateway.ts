import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, resolve } from "node:path";
import type { Command } from "commander";
import { adminToken, parseAddress, parseCount, parseThreads } from "./address.ts";
import { badUsage } from "./exit-code.ts";
import { knownIn } from "./known-in.ts";
import { createLog } from "./log.ts";
import { isChild, tellReady, untilStopped } from "./process-life.ts";
import { readFleetFiles } from "./read-fleet.ts";
import { watchFleet } from "./reload-fleet.ts";

interface GatewayFlags {
  cluster: string;
  fleet: string;
  listen: string;
  admin: string;
  control: string;
  state: string;
  threads?: string;
  unreadyMs?: string;
}

export function addGateway(program: Command): void {
  program
    .command("gateway")
    .description("route a cluster's requests to engines by the control plane's weights")
    .requiredOption("--cluster <name>", "cluster of the fleet file that it belongs to")
    .requiredOption("--fleet <file>", "fleet file: bootstrap, limits and secrets; snapshots bring the rest")
    .requiredOption("--listen <host:port>", "where clients connect")
    .requiredOption("--admin <host:port>", "where operators connect; not loopback needs GUIDEVANE_ADMIN_TOKEN")
    .requiredOption("--control <url,url>", "admin addresses of the control planes")
    .requiredOption("--state <dir>", "folder that keeps the last good snapshot")
    .option("--threads <n>", "threads that serve requests (default: as many as cores)")
    .option("--unready-ms <ms>", "on SIGTERM, serve on for so long while /readyz says 503 (default: 0)")
    .action((flags: GatewayFlags) => gateway(flags));
}

async function gateway(flags: GatewayFlags): Promise<void> {
  const threads = flags.threads === undefined ? availableParallelism() : parseThreads("--threads", flags.threads);
  const unreadyMs = flags.unreadyMs === undefined ? 0 : parseCount("--unready-ms", flags.unreadyMs);
  parseAddress("--listen", flags.listen);
  const token = adminToken("--admin", parseAddress("--admin", flags.admin), process.env);
  const controlUrls = flags.control.split(",").map((url) => parseUrl("--control", url));
  const files = await readFleetFiles(flags.fleet);
  const { fleet } = files;
  knownIn("--cluster", flags.cluster, "a cluster", fleet.clusters);
  // Loaded here, so that a command does not wait for what only another one needs.
  const [{ startGateway }, { makeOwnFolder }] = await Promise.all([
    import("@guidevane/gateway"),
    import("./own-folder.ts"),
  ]);
  makeOwnFolder("--state", flags.state);
  const stopped = untilStopped({ hangupEnds: false });
  const logger = createLog("gateway", process.env);
  const running = await startGateway({
    fleet,
    cluster: flags.cluster,
    listen: flags.listen,
    admin: flags.admin,
    controlUrls,
    stateDir: flags.state,
    threads,
    adminToken: token,
    secrets: {
      env: (name) => process.env[name],
      file: (path) => readFileSync(resolve(dirname(resolve(flags.fleet)), path), "utf8"),
    },
    logger,
  });
  const watch = watchFleet({ path: flags.fleet, files, logger, take: async (next) => running.reload(next) });
  tellReady();
  const why = await stopped;
  logger.info({ why }, "stopping");
  watch.stop();
  if (isChild()) await running.stop(CHILD_GRACE_MS);
  else await running.stop(undefined, why === "SIGTERM" ? unreadyMs : 0);
}

/** `guidevane up` ends everything within five seconds. */
const CHILD_GRACE_MS = 1500;

function parseUrl(flag: string, text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol)) badUsage(flag, text, "must be an http or https URL");
  return text.replace(/\/+$/, "");
}
