import { open, readFile, rename } from "node:fs/promises";
import { join } from "node:path";

/**
 * The last good snapshot of a cluster on disk, so that a gateway starts without a control plane. Written to the side and
 * renamed: a reader finds the old one or the new one, whole.
 */
export class SnapshotFile {
  readonly path: string;
  #last: Promise<void> = Promise.resolve();

  constructor(stateDir: string, cluster: string) {
    this.path = join(stateDir, `snapshot-${cluster}.json`);
  }

  /** Text of the file, or null where there is none. @throws what reading throws */
  async read(): Promise<string | null> {
    try {
      return await readFile(this.path, "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
      throw error;
    }
  }

  /** Writes one after the other, so that a newer snapshot is never replaced by an older one. @throws what writing throws */
  write(json: string): Promise<void> {
    const next = this.#last.then(
      () => this.#replace(json),
      () => this.#replace(json),
    );
    this.#last = next;
    return next;
  }

  async #replace(json: string): Promise<void> {
    const aside = `${this.path}.${process.pid}.tmp`;
    const file = await open(aside, "w");
    try {
      await file.writeFile(json);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(aside, this.path);
  }
}
