import { unwatchFile, watchFile } from "node:fs";
import { resolve } from "node:path";
import { type Fleet, GuidevaneError } from "@guidevane/core";
import { type FleetFiles, readFleetFiles } from "./read-fleet.ts";

export interface ReloadOptions {
  readonly path: string;
  /** What the program was started with. */
  readonly files: FleetFiles;
  /** What the program does with another fleet: gives the changed keys that need a restart. @throws GuidevaneError to refuse it */
  readonly take: (fleet: Fleet) => Promise<readonly string[]>;
  readonly logger: {
    info(facts: object, message: string): void;
    warn(facts: object, message: string): void;
    error(facts: object, message: string): void;
  };
  /** How often the files' dates are looked at: not every file system gives notices. Default 1000. */
  readonly pollMs?: number;
}

/** A fleet file under watch. */
export interface FleetWatch {
  /**
   * Reads the file now; resolves when it has been taken or refused. Never rejects.
   *
   * @param always take it also where no text changed, as on SIGHUP: a key file that it names may have
   */
  reload(why: string, always?: boolean): Promise<void>;
  stop(): void;
}

/**
 * Reads the fleet file again when it, or a file that it names, changes, and on SIGHUP. It is checked whole and taken
 * whole; one that is refused is said so, and the present fleet stays.
 */
export function watchFleet({ path, files, take, logger, pollMs = 1000 }: ReloadOptions): FleetWatch {
  const watched = new Set<string>();
  let present = files.texts;
  let running: Promise<void> = Promise.resolve();
  let stopped = false;

  /** One after another: each compares with what the one before took. */
  function reload(why: string, always = false): Promise<void> {
    running = running.then(() => (stopped ? undefined : readAndTake(why, always)));
    return running;
  }

  async function readAndTake(why: string, always: boolean): Promise<void> {
    const facts = { why, fleet: path };
    try {
      const { fleet, texts } = await readFleetFiles(path);
      watch(texts.keys());
      if (isSame(texts, present) && !always) {
        logger.info(facts, "the fleet file is as before");
        return;
      }
      const needRestart = await take(fleet);
      present = texts;
      if (needRestart.length === 0) logger.info(facts, "took the fleet file");
      else
        logger.warn({ ...facts, needRestart }, `took the fleet file; only a restart takes: ${needRestart.join(", ")}`);
    } catch (error) {
      // An editor saves in two steps, and a person makes mistakes.
      const message = GuidevaneError.is(error) ? error.message : String(error);
      logger.error({ ...facts, error: message }, "the fleet file was refused; the present one stays");
    }
  }

  function watch(names: Iterable<string>): void {
    for (const name of names) {
      if (watched.has(name) || stopped) continue;
      watched.add(name);
      watchFile(name, { interval: pollMs, persistent: false }, onChange);
    }
  }
  const onChange = (): void => void reload("a file changed");
  const onHangup = (): void => void reload("SIGHUP", true);
  watch([resolve(path), ...files.texts.keys()]);
  process.on("SIGHUP", onHangup);
  return {
    reload,
    stop() {
      stopped = true;
      process.off("SIGHUP", onHangup);
      for (const name of watched) unwatchFile(name, onChange);
    },
  };
}

function isSame(one: ReadonlyMap<string, string>, other: ReadonlyMap<string, string>): boolean {
  return one.size === other.size && [...one].every(([name, text]) => other.get(name) === text);
}
