import { type ClusterSnapshot, type Fleet, parseClusterSnapshot } from "@guidevane/core";
import type { DriveReport } from "@guidevane/simulator";
import { fetchAnswer } from "./fetch-answer.ts";

/** Where one cell's traffic goes: what was planned beside what was measured. */
export interface CellTraffic {
  readonly cluster: string;
  readonly class: string;
  readonly demandRps: number;
  /** By engine id: the weight, and the share of whole answers; null where nothing was driven. */
  readonly engines: ReadonlyMap<string, { readonly weight: number; readonly share: number | null }>;
  readonly meanMs: number | null;
  readonly failures: Readonly<Record<string, number>>;
}

/** What `up` prints when traffic has settled on the weights. */
export interface UpMeasure {
  readonly version: number;
  readonly cells: readonly CellTraffic[];
  /** Means over the seconds measured. `gap` is to the best that any weights could give: the certificate's without the price of moving. */
  readonly expectedMs: number;
  readonly gap: number;
  /** Of all whole answers, round trips included; null where nothing was driven. */
  readonly measuredMs: number | null;
  /** Half of a 95 % interval about `measuredMs`; null where the seconds are too few to tell. */
  readonly plusMinusMs: number | null;
  readonly answered: number;
  readonly failed: number;
  readonly seconds: number;
  /** The most that the driver sent a request after its time: on a machine that is busy with other things all times grow. */
  readonly lateMs: number;
}

/** Collects snapshots and drive reports, second by second, and averages both over the same time. */
export class UpMeasurement {
  readonly #fleet: Fleet;
  readonly #snapshots: ReadonlyMap<string, ClusterSnapshot>[] = [];
  readonly #reports: DriveReport[] = [];

  constructor(fleet: Fleet) {
    this.#fleet = fleet;
  }

  addSnapshots(byCluster: ReadonlyMap<string, ClusterSnapshot>): void {
    this.#snapshots.push(byCluster);
  }

  addReport(report: DriveReport): void {
    this.#reports.push(report);
  }

  result(): UpMeasure {
    const newest = [...this.#snapshots.at(-1)!.values()][0]!;
    const certificates = this.#snapshots.map((each) => [...each.values()][0]!.certificate);
    const driven = this.#reports.flatMap((report) => report.cells);
    const answered = sum(driven, (cell) => cell.answered);
    const latencyMs = sum(driven, (cell) => (cell.meanMs ?? 0) * cell.answered);
    return {
      version: newest.version,
      cells: [...this.#fleet.clusters.keys()].flatMap((cluster) => this.#traffic(cluster)),
      expectedMs: mean(certificates.map((each) => each.expectedLatencyMs)),
      gap: mean(certificates.map((each) => each.churnFree.gap)),
      measuredMs: answered === 0 ? null : latencyMs / answered,
      plusMinusMs: plusMinusMs(this.#reports),
      answered,
      failed: sum(driven, (cell) => Object.values(cell.failures).reduce((total, count) => total + count, 0)),
      seconds: this.#reports.reduce((total, report) => total + report.elapsedMs, 0) / 1000,
      lateMs: Math.max(0, ...this.#reports.map((report) => report.lateMs)),
    };
  }

  #traffic(cluster: string): CellTraffic[] {
    const newest = this.#snapshots.at(-1)!.get(cluster);
    return (newest?.cells ?? []).map((cell) => {
      const driven = this.#reports
        .flatMap((report) => report.cells)
        .filter((each) => each.cluster === cluster && each.class === cell.class);
      const answered = sum(driven, (each) => each.answered);
      const weights = this.#snapshots.map((each) => weightsOf(each.get(cluster), cell.class));
      // Weights change within the seconds measured: an engine that only an earlier snapshot used took its part as well.
      const used = new Set([
        ...weights.flatMap((each) => [...each.keys()]),
        ...driven.flatMap((each) => Object.keys(each.engines)),
      ]);
      const engines = new Map(
        [...this.#fleet.engines.keys()]
          .filter((id) => used.has(id))
          .map((id) => {
            const weight = mean(weights.map((each) => each.get(id) ?? 0));
            const share = answered === 0 ? null : sum(driven, (each) => each.engines[id] ?? 0) / answered;
            return [id, { weight, share }] as const;
          }),
      );
      return {
        cluster,
        class: cell.class,
        demandRps: cell.demandRps,
        engines,
        meanMs: answered === 0 ? null : sum(driven, (each) => (each.meanMs ?? 0) * each.answered) / answered,
        failures: mergeCounts(driven.map((each) => each.failures)),
      };
    });
  }
}

/**
 * By means of batches that follow each other: answers of one second resemble each other, since they met the same queues, and
 * count as one.
 */
function plusMinusMs(reports: readonly DriveReport[]): number | null {
  const size = Math.floor(reports.length / BATCHES);
  if (size === 0) return null;
  const batches = Array.from({ length: BATCHES }, () => ({ answered: 0, latencyMs: 0 }));
  for (const [index, { cells }] of reports.entries()) {
    const batch = batches[Math.min(BATCHES - 1, Math.floor(index / size))]!;
    batch.answered += sum(cells, (cell) => cell.answered);
    batch.latencyMs += sum(cells, (cell) => (cell.meanMs ?? 0) * cell.answered);
  }
  const answered = sum(batches, (batch) => batch.answered);
  if (answered === 0) return null;
  const meanMs = sum(batches, (batch) => batch.latencyMs) / answered;
  const squares = sum(batches, (batch) => (batch.latencyMs - meanMs * batch.answered) ** 2);
  return (STUDENT_T * Math.sqrt((squares * BATCHES) / (BATCHES - 1))) / answered;
}

const BATCHES = 5;
/** Two-sided 95 %, four degrees of freedom. */
const STUDENT_T = 2.776;

/** Every cluster's present snapshot, or null while there is none. Rejects when the control plane can't be reached. */
export async function fetchSnapshots(
  controlUrl: string,
  clusters: Iterable<string>,
  token: string | undefined,
): Promise<Map<string, ClusterSnapshot> | null> {
  const found = new Map<string, ClusterSnapshot>();
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  for (const cluster of clusters) {
    const path = `/v1/snapshot?cluster=${encodeURIComponent(cluster)}`;
    const { status, text } = await fetchAnswer("control plane", controlUrl, path, { headers });
    if (status === 503) return null;
    if (status !== 200) throw new Error(`${controlUrl}/v1/snapshot: http ${status} ${text}`);
    found.set(cluster, parseClusterSnapshot(text, `snapshot of ${cluster}`));
  }
  return found;
}

function weightsOf(snapshot: ClusterSnapshot | undefined, requestClass: string): Map<string, number> {
  const cell = snapshot?.cells.find((each) => each.class === requestClass);
  return new Map(cell?.engines.map((id, index) => [id, cell.weights[index]!]));
}

function mergeCounts(all: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const merged: Record<string, number> = {};
  for (const counts of all) {
    for (const [key, count] of Object.entries(counts)) merged[key] = (merged[key] ?? 0) + count;
  }
  return merged;
}

function sum<Item>(items: readonly Item[], of: (item: Item) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}

function mean(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0) / values.length;
}
