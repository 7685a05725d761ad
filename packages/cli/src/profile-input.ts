import { createReadStream } from "node:fs";
import { createGunzip } from "node:zlib";
import { GuidevaneError } from "@guidevane/core";
import type { LoadCurves } from "@guidevane/signals";
import { unreadable } from "./unreadable.ts";

/** What logs of requests do not say. */
export interface LogFlags {
  readonly loop?: "open" | "closed" | undefined;
  readonly gpu?: string | undefined;
  readonly model?: string | undefined;
}

/**
 * Reads files of measured points, or logs of requests, told by their first line; `.gz` as it is. Several logs are runs with a
 * clock each.
 *
 * @throws GuidevaneError `bad_points`, `bad_log`; `bad_usage` when a file can't be read
 */
export async function readMeasurements(paths: readonly string[], flags: LogFlags): Promise<LoadCurves> {
  const { curvesOfLog, parseLoadPoints, readRequestLog } = await import("@guidevane/signals");
  const kinds = await Promise.all(paths.map(async (path) => ({ path, isLog: isLog(await headOf(path)) })));
  const points = kinds.filter(({ isLog }) => !isLog).map(({ path }) => path);
  const logs = kinds.filter(({ isLog }) => isLog).map(({ path }) => path);
  const files = await Promise.all(points.map(async (path) => parseLoadPoints(await textOf(path), path)));
  const log = await readRequestLog(
    logs.map((path) => ({ name: path, chunks: chunksOf(path) })),
    { gpu: flags.gpu ?? "", model: flags.model ?? "" },
  );
  const parts = [...files, curvesOfLog(log, flags.loop ?? null)];
  const left: Record<string, number> = {};
  for (const part of parts) for (const [why, count] of Object.entries(part.left)) left[why] = (left[why] ?? 0) + count;
  return { curves: parts.flatMap(({ curves }) => curves), left };
}

/** A log is JSON lines, or CSV whose header names a start. */
function isLog(head: string): boolean {
  const [first = ""] = head
    .replace(/^\uFEFF/, "")
    .trimStart()
    .split(/\r?\n/, 1);
  return first.startsWith("{") || /(^|,)"?start(_s|_ms|_us|_ns)?"?(,|$)/.test(first.replace(/ /g, ""));
}

async function headOf(path: string): Promise<string> {
  for await (const chunk of chunksOf(path)) return Buffer.from(chunk).toString("utf8");
  return "";
}

/** A table of points that is larger is none. */
const POINTS_MAX_BYTES = 64 << 20;

async function textOf(path: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of chunksOf(path)) {
    bytes += chunk.length;
    if (bytes > POINTS_MAX_BYTES)
      throw new GuidevaneError(
        "bad_points",
        `${path}: more than ${POINTS_MAX_BYTES} bytes, and its header names no start, so it is no log of requests`,
      );
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

async function* chunksOf(path: string): AsyncGenerator<Uint8Array> {
  const file = createReadStream(path);
  try {
    if (!path.endsWith(".gz")) return yield* file;
    const plain = createGunzip();
    file.on("error", (error) => plain.destroy(error));
    yield* file.pipe(plain);
  } catch (error) {
    throw unreadable("file of measurements", path, error);
  } finally {
    // Whoever reads only the head leaves it open.
    file.destroy();
  }
}
