import type { SnapshotSource } from "./compiled-snapshots.ts";
import type { Logger } from "./logger.ts";
import type { GatewayMetrics } from "./metrics.ts";
import type { SnapshotFile } from "./snapshot-file.ts";
import type { SnapshotText } from "./snapshot-text.ts";
import type { Offered, Snapshots } from "./snapshots.ts";

/** Where snapshots come in: offered, told of in log and metrics, kept on disk when good. */
export class SnapshotIntake {
  readonly #snapshots: Snapshots;
  readonly #file: SnapshotFile | null;
  readonly #metrics: GatewayMetrics;
  readonly #log: Logger;
  #saveFailed = false;
  #lastRefusal = "";

  /** @param file null = nothing is kept */
  constructor(snapshots: Snapshots, file: SnapshotFile | null, metrics: GatewayMetrics, log: Logger) {
    this.#snapshots = snapshots;
    this.#file = file;
    this.#metrics = metrics;
    this.#log = log;
    metrics.snapshotVersion.set(snapshots.snapshot.version);
  }

  async offer(text: SnapshotText, source: SnapshotSource): Promise<Offered> {
    const offered = await this.#snapshots.offer(text, source);
    if (offered.kind === "refused") {
      const { reason, message } = offered;
      this.#metrics.snapshotRefused.inc({ reason });
      // The same bad snapshot is offered again and again; the counter has them all.
      if (message !== this.#lastRefusal)
        this.#log.error({ source, reason, why: message }, "snapshot refused, the present one is kept");
      this.#lastRefusal = message;
    } else if (offered.kind === "taken") {
      this.#lastRefusal = "";
      this.#metrics.snapshotVersion.set(this.#snapshots.snapshot.version);
      this.#log.info({ source, tag: offered.tag }, "snapshot in use");
      if (source !== "disk") this.#save(text);
    }
    return offered;
  }

  /** A snapshot on disk that can't be read or used is no reason not to start. */
  async startFromDisk(): Promise<void> {
    if (this.#file === null) return;
    try {
      const text = await this.#file.read();
      if (text !== null) await this.offer(text, "disk");
    } catch (error) {
      this.#log.error({ path: this.#file.path, why: messageOf(error) }, "snapshot on disk not read");
    }
  }

  #save(text: SnapshotText): void {
    const file = this.#file;
    if (file === null) return;
    file.write(text).then(
      () => {
        this.#saveFailed = false;
      },
      (error: unknown) => {
        if (!this.#saveFailed) this.#log.error({ path: file.path, why: messageOf(error) }, "snapshot not saved");
        this.#saveFailed = true;
      },
    );
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
