import { link, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import { GuidevaneError, parseClusterSnapshot, type StoredPublication } from "@guidevane/core";
import { z } from "zod";
import { isCode, makeFolder, seal, sha256, syncFolder, unseal, writeSynced } from "./files.ts";

/**
 * Publications as files:
 *
 *     000000000042.json           manifest of version 42: stamp, and name and SHA-256 of each blob. Its presence is the publication
 *     42-5f0c…/cluster-0.json.gz  one blob per cluster
 *     42-5f0c…/problem.json.gz
 *     42-5f0c…/manifest.json      written and flushed here first, then linked to its final name
 *
 * The link is what publishes, and it fails when another writer has published that version. What a killed writer leaves
 * is a folder that no manifest names, removed once a later version stands.
 */

const zip = promisify(gzip);
const unzip = promisify(gunzip);

const blob = z.object({ file: z.string().regex(/^[a-z0-9-]+\.json\.gz$/), sha256: z.string() });
const manifestSchema = z.object({
  format: z.literal(1),
  version: z.int().positive(),
  epoch: z.int().positive(),
  folder: z.string().regex(/^[0-9a-f-]+$/),
  clusters: z.record(z.string(), blob),
  problem: blob,
  why: z.string().exactOptional(),
  /** Of all its blobs, compressed. Left out by versions before this was counted. */
  bytes: z.int().nonnegative().exactOptional(),
});
export type Manifest = z.infer<typeof manifestSchema>;

/** Versions that have a manifest, newest first; empty where there is no folder. */
export async function listVersions(directory: string): Promise<number[]> {
  const names = await namesIn(directory);
  return names
    .map((name) => /^(\d{12,})\.json$/.exec(name)?.[1])
    .filter((digits) => digits !== undefined)
    .map(Number)
    .sort((a, b) => b - a);
}

/** @throws GuidevaneError `store_unreadable`, saying what is damaged */
export async function readManifest(directory: string, version: number): Promise<Manifest> {
  const name = manifestName(version);
  const parsed = manifestSchema.safeParse(unseal(await readFile(join(directory, name), "utf8")));
  if (!parsed.success) throw new GuidevaneError("store_unreadable", `${name}: the manifest is damaged`);
  if (parsed.data.version !== version)
    throw new GuidevaneError("store_unreadable", `${name}: the manifest is of version ${parsed.data.version}`);
  return parsed.data;
}

/**
 * A whole publication, every checksum and every snapshot checked.
 *
 * @throws GuidevaneError `store_unreadable` or `bad_snapshot`, saying what is damaged
 */
export async function readPublication(directory: string, version: number): Promise<StoredPublication> {
  const manifest = await readManifest(directory, version);
  const clusters = await Promise.all(
    Object.entries(manifest.clusters).map(async ([cluster, { file, sha256 }]) => {
      const name = join(manifest.folder, file);
      return [cluster, parseClusterSnapshot(await readBlob(directory, name, sha256), name)] as const;
    }),
  );
  const problem = join(manifest.folder, manifest.problem.file);
  return {
    version: manifest.version,
    epoch: manifest.epoch,
    clusters: new Map(clusters),
    problem: JSON.parse(await readBlob(directory, problem, manifest.problem.sha256)) as unknown,
    ...whyOf(manifest),
  };
}

/** Nothing where it is not known. */
function whyOf({ why }: { readonly why?: string }): { readonly why?: string } {
  return why === undefined ? {} : { why };
}

async function readBlob(directory: string, name: string, expected: string): Promise<string> {
  let bytes: Buffer;
  try {
    bytes = await readFile(join(directory, name));
  } catch (error) {
    throw new GuidevaneError("store_unreadable", `${name}: can't be read`, { cause: error });
  }
  const found = sha256(bytes);
  if (found !== expected)
    throw new GuidevaneError("store_unreadable", `${name}: SHA-256 is ${found}, the manifest says ${expected}`);
  return (await unzip(bytes)).toString();
}

/** @throws GuidevaneError `store_conflict` when another writer has published the version */
export async function writePublication(directory: string, publication: StoredPublication, mark: string): Promise<void> {
  const { version } = publication;
  const folder = `${version}-${mark}`;
  try {
    await writeFolder(directory, folder, publication);
    await link(join(directory, folder, MANIFEST), join(directory, manifestName(version)));
  } catch (error) {
    // Over a network a link may be made and its answer lost: the repeated call then finds it there.
    if ((await folderOf(directory, version)) === folder) return;
    await rm(join(directory, folder), { recursive: true, force: true });
    // The link says so itself; a writer that is far behind finds its folder pruned before it comes to that.
    if ((await listVersions(directory)).some((stands) => stands >= version))
      throw new GuidevaneError("store_conflict", `version ${version} was published by another writer`, {
        cause: error,
      });
    throw error;
  }
  await syncFolder(directory);
}

/** All that makes a publication but its presence, flushed to the disk. */
async function writeFolder(directory: string, folder: string, publication: StoredPublication): Promise<void> {
  await makeFolder(directory);
  await makeFolder(join(directory, folder));
  let total = 0;
  const write = async (name: string, data: unknown) => {
    const bytes = await zip(JSON.stringify(data));
    total += bytes.length;
    await writeSynced(join(directory, folder, `${name}.json.gz`), bytes);
    return { file: `${name}.json.gz`, sha256: sha256(bytes) };
  };
  const clusters: Manifest["clusters"] = {};
  for (const [index, [cluster, snapshot]] of [...publication.clusters].entries()) {
    clusters[cluster] = await write(`cluster-${index}`, snapshot);
  }
  // undefined has no JSON, and a blob must have some.
  const problem = await write("problem", publication.problem ?? null);
  const { version, epoch } = publication;
  const why = whyOf(publication);
  const manifest: Manifest = { format: 1, version, epoch, folder, clusters, problem, ...why, bytes: total };
  await writeSynced(join(directory, folder, MANIFEST), seal(manifest));
  await syncFolder(join(directory, folder));
  await syncFolder(directory);
}

const MANIFEST = "manifest.json";

/** What is kept: the newest so many, fewer where they would take more bytes, but always two: one to roll back to. */
export interface Keep {
  readonly versions: number;
  readonly bytes: number;
}

const LEAST_VERSIONS = 2;

/** Removes versions that are not to be kept, and folders that a killed writer left. */
export async function prune(directory: string, keep: Keep): Promise<void> {
  const versions = await listVersions(directory);
  const newest = versions[0];
  if (newest === undefined) return;
  const kept = new Set<string>();
  let bytes = 0;
  let full = false;
  for (const [index, version] of versions.entries()) {
    const manifest = full ? null : await manifestIfWhole(directory, version);
    bytes += manifest?.bytes ?? 0;
    full ||= index >= keep.versions || (index >= LEAST_VERSIONS && bytes > keep.bytes);
    if (full) await rm(join(directory, manifestName(version)), { force: true });
    else if (manifest !== null) kept.add(manifest.folder);
  }
  for (const name of await namesIn(directory)) {
    const version = /^(\d+)-[0-9a-f-]+$/.exec(name)?.[1];
    // One of the newest version or above may be another writer's, still being filled.
    if (version !== undefined && Number(version) < newest && !kept.has(name))
      await rm(join(directory, name), { recursive: true, force: true });
  }
}

/** Folder of a version; empty where its manifest is damaged. */
async function folderOf(directory: string, version: number): Promise<string> {
  return (await manifestIfWhole(directory, version))?.folder ?? "";
}

/** A version's manifest; null where it is damaged or gone: nothing of it can be read again. */
async function manifestIfWhole(directory: string, version: number): Promise<Manifest | null> {
  try {
    return await readManifest(directory, version);
  } catch (error) {
    if (GuidevaneError.is(error) || isCode(error, "ENOENT")) return null;
    throw error;
  }
}

function manifestName(version: number): string {
  return `${String(version).padStart(12, "0")}.json`;
}

async function namesIn(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (isCode(error, "ENOENT")) return [];
    throw error;
  }
}
