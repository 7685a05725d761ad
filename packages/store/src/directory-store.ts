import { randomUUID } from "node:crypto";
import { type FSWatcher, watch } from "node:fs";
import { join } from "node:path";
import {
  ADMIN_STATES,
  type Clock,
  type ClusterSnapshot,
  GuidevaneError,
  type OperatorState,
  type Publication,
  type Stamp,
  type Store,
  type StoredPublication,
  systemClock,
} from "@guidevane/core";
import { z } from "zod";
import { makeFolder, makeFolders, readIfThere, replaceFile, seal, unseal } from "./files.ts";
import {
  type Keep,
  listVersions,
  prune,
  readManifest,
  readPublication,
  writePublication,
} from "./publication-files.ts";

export interface DirectoryStoreOptions {
  readonly directory: string;
  readonly clock?: Clock;
  /** Publications kept. More = further back that one can roll and compare. Default 200. */
  readonly keep?: number;
  /** Fewer are kept where they would take more than this on the disk, but always two. Default 64 MiB. */
  readonly keepBytes?: number;
  /** How often `watch` looks where the system's own notices do not come. Default 1000. */
  readonly pollMs?: number;
  /** Told of each damaged publication that was passed over, once, and of pruning or watching that failed. */
  readonly onProblem?: (error: Error) => void;
}

const operatorSchema = z.object({
  engines: z.record(z.string(), z.enum(ADMIN_STATES)),
  frozen: z.boolean().exactOptional(),
  rolledBackTo: z.int().positive().exactOptional(),
  pins: z
    .array(
      z.object({
        cluster: z.string(),
        class: z.string(),
        weights: z.record(z.string(), z.number().min(0).max(1)),
        until: z.string(),
      }),
    )
    .exactOptional(),
});

/**
 * A store in a directory: one writer, any number of readers, no other process.
 *
 * A writer's epoch is max(stored + 1, Unix seconds) when it first puts, so that gateways which saw an earlier writer take
 * its snapshots even if the directory was wiped in between. A writer that finds a higher epoch has been replaced, and
 * each further `put` of it is refused as `store_replaced`.
 */
export function openDirectoryStore(options: DirectoryStoreOptions): Store {
  return new DirectoryStore(options);
}

class DirectoryStore implements Store {
  readonly #publications: string;
  readonly #operator: string;
  readonly #clock: Clock;
  readonly #keep: Keep;
  readonly #pollMs: number;
  readonly #onProblem: (error: Error) => void;
  readonly #told = new Set<number>();
  #epoch = 0;
  #present: Stamp | null = null;

  constructor({ directory, clock, keep, keepBytes, pollMs, onProblem }: DirectoryStoreOptions) {
    this.#publications = join(directory, "publications");
    this.#operator = join(directory, "operator.json");
    this.#clock = clock ?? systemClock;
    this.#keep = { versions: keep ?? 200, bytes: keepBytes ?? 64 * 2 ** 20 };
    this.#pollMs = pollMs ?? 1000;
    this.#onProblem = onProblem ?? (() => {});
  }

  async put(publication: Publication, expectedVersion: number): Promise<StoredPublication> {
    const [newest = 0] = await listVersions(this.#publications);
    if (this.#present?.version !== newest) await this.get();
    const present = this.#present ?? { version: 0, epoch: 0 };
    if (present.version !== expectedVersion)
      throw new GuidevaneError(
        "store_conflict",
        `the store is at version ${present.version}, the writer expected ${expectedVersion}`,
      );
    if (this.#epoch === 0) this.#epoch = Math.max(present.epoch + 1, Math.floor(this.#clock.wallMs() / 1000));
    if (present.epoch > this.#epoch)
      throw new GuidevaneError(
        "store_replaced",
        `a writer of epoch ${present.epoch} has replaced this one of epoch ${this.#epoch}`,
      );
    // A damaged newest version is passed over, but its number was seen by gateways and is not given twice.
    const stamp: Stamp = { version: newest + 1, epoch: this.#epoch };
    const stored: StoredPublication = {
      ...publication,
      ...stamp,
      clusters: new Map(
        [...publication.clusters].map(([name, each]) => [name, { ...each, ...stamp } as ClusterSnapshot]),
      ),
    };
    await writePublication(this.#publications, stored, randomUUID());
    this.#present = stamp;
    await prune(this.#publications, this.#keep).catch(this.#onProblem);
    return stored;
  }

  async get(): Promise<StoredPublication | null> {
    for (;;) {
      const versions = await listVersions(this.#publications);
      const found = await this.#newestWhole(versions);
      if (found === "pruned") continue;
      this.#present = found === null ? null : { version: found.version, epoch: found.epoch };
      if (found === null && versions.length > 0)
        throw new GuidevaneError(
          "store_unreadable",
          `${this.#publications}: none of ${versions.length} publications is whole`,
        );
      return found;
    }
  }

  /** `pruned` when a version vanished while it was read: then there are newer ones. */
  async #newestWhole(versions: readonly number[]): Promise<StoredPublication | "pruned" | null> {
    for (const version of versions) {
      try {
        return await readPublication(this.#publications, version);
      } catch (error) {
        if (!(await listVersions(this.#publications)).includes(version)) return "pruned";
        this.#report(version, error);
      }
    }
    return null;
  }

  async getVersion(version: number): Promise<StoredPublication | null> {
    if (!(await listVersions(this.#publications)).includes(version)) return null;
    try {
      return await readPublication(this.#publications, version);
    } catch (error) {
      // Pruned while it was read: then it is not kept.
      if (!(await listVersions(this.#publications)).includes(version)) return null;
      throw error;
    }
  }

  versions(): Promise<readonly number[]> {
    return listVersions(this.#publications);
  }

  watch(onChange: (stamp: Stamp) => void): () => void {
    let last = "";
    let stopped = false;
    let cancelPoll = () => {};
    let watcher: FSWatcher | undefined;
    let looking = false;
    let again = false;
    const look = async (): Promise<void> => {
      if (looking) {
        again = true;
        return;
      }
      looking = true;
      do {
        again = false;
        const stamp = await this.#newestStamp();
        const tag = stamp === null ? "" : `${stamp.epoch}-${stamp.version}`;
        if (stopped) return;
        if (stamp !== null && tag !== last) onChange(stamp);
        last = tag;
      } while (again);
      looking = false;
    };
    const poll = (): void => {
      void look();
      cancelPoll = this.#clock.after(this.#pollMs, poll);
    };
    try {
      makeFolders(this.#publications);
      watcher = watch(this.#publications, { persistent: false }, () => void look());
      watcher.on("error", this.#onProblem);
    } catch (error) {
      // Some network file systems give no notices; the poll still does.
      this.#onProblem(error as Error);
    }
    poll();
    return () => {
      stopped = true;
      cancelPoll();
      watcher?.close();
    };
  }

  async putOperator(state: OperatorState): Promise<void> {
    await makeFolder(join(this.#operator, ".."));
    await replaceFile(this.#operator, seal(operatorSchema.parse(state)));
  }

  async getOperator(): Promise<OperatorState> {
    const bytes = await readIfThere(this.#operator);
    if (bytes === null) return { engines: {} };
    const parsed = operatorSchema.safeParse(unseal(bytes.toString()));
    if (!parsed.success) throw new GuidevaneError("store_unreadable", `${this.#operator}: is damaged`);
    return parsed.data;
  }

  async #newestStamp(): Promise<Stamp | null> {
    try {
      for (const version of await listVersions(this.#publications)) {
        try {
          return await readManifest(this.#publications, version);
        } catch (error) {
          this.#report(version, error);
        }
      }
    } catch (error) {
      this.#onProblem(error as Error);
    }
    return null;
  }

  #report(version: number, error: unknown): void {
    if (this.#told.has(version)) return;
    this.#told.add(version);
    this.#onProblem(error as Error);
  }
}
