import type { Command } from "commander";
import { adminToken, parseAddress } from "./address.ts";
import { badUsage } from "./exit-code.ts";
import { createLog } from "./log.ts";
import { tellReady, untilStopped, untilTold } from "./process-life.ts";
import { readFleetFiles } from "./read-fleet.ts";
import { watchFleet } from "./reload-fleet.ts";

interface ControlFlags {
  fleet: string;
  admin: string;
  store: string;
  advise?: true;
}

export function addControl(program: Command): void {
  program
    .command("control")
    .description("solve for the fleet's weights every tick and publish them to gateways")
    .requiredOption("--fleet <file>", "fleet file")
    .requiredOption(
      "--admin <host:port>",
      "where gateways and operators connect; not loopback needs GUIDEVANE_ADMIN_TOKEN",
    )
    .requiredOption("--store <dir>", "folder that keeps publications and what operators said")
    .option("--advise", "solve and explain, publish nothing")
    .action((flags: ControlFlags) => control(flags));
}

async function control(flags: ControlFlags): Promise<void> {
  const address = parseAddress("--admin", flags.admin);
  const token = adminToken("--admin", address, process.env);
  if (/^nats:/.test(flags.store)) badUsage("--store", flags.store, "nats is not supported yet; name a folder");
  const files = await readFleetFiles(flags.fleet);
  // Loaded here, so that a command does not wait for what only another one needs.
  const [{ startControl }, { openDirectoryStore }, { makeOwnFolder }] = await Promise.all([
    import("@guidevane/control"),
    import("@guidevane/store"),
    import("./own-folder.ts"),
  ]);
  makeOwnFolder("--store", flags.store);
  const stopped = untilStopped({ hangupEnds: false });
  const logger = createLog("control", process.env);
  const early = await Promise.race([untilTold(), stopped]);
  if (early !== undefined) return;
  const running = await startControl({
    fleet: files.fleet,
    store: openDirectoryStore({
      directory: flags.store,
      onProblem: (error) => logger.warn({ error: error.message }, "the store has a problem"),
    }),
    adminHost: address.host,
    adminPort: address.port,
    adminToken: token ?? undefined,
    logger,
    advise: flags.advise ?? false,
  });
  const watch = watchFleet({
    path: flags.fleet,
    files,
    logger,
    take: async (next) => {
      await running.reload(next);
      return [];
    },
  });
  tellReady();
  logger.info({ why: await stopped }, "stopping");
  watch.stop();
  await running.stop();
}
