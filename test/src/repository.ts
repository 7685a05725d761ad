import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

export const root: string = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

export interface Workspace {
  /** Without the scope. */
  readonly name: string;
  /** Relative to the root. */
  readonly folder: string;
  readonly manifest: Manifest;
}

export interface Manifest {
  readonly name: string;
  readonly private?: boolean;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly scripts?: Readonly<Record<string, string>>;
  readonly license?: string;
  readonly engines?: Readonly<Record<string, string>>;
  readonly files?: readonly string[];
  readonly exports?: Readonly<Record<string, unknown>>;
  readonly bin?: Readonly<Record<string, string>>;
}

/** Every package that is published: those under packages/ and the addon's door. */
export function publishedPackages(): Workspace[] {
  const folders = readdirSync(join(root, "packages")).map((name) => `packages/${name}`);
  return [...folders, "native"].filter((folder) => existsSync(join(root, folder, "package.json"))).map(workspace);
}

export function workspace(folder: string): Workspace {
  const manifest = JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8")) as Manifest;
  return { name: manifest.name.replace(/^@guidevane\//, ""), folder, manifest };
}

/** TypeScript files below a folder, relative to the root. */
export function sourceFiles(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.[cm]?ts$/.test(entry.name))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .sort();
}

/** Tests and what only tests use: neither is built nor shipped. */
export function isTestFile(file: string): boolean {
  return /\.(test|fixture)\.ts$|\/src\/testing\//.test(file);
}
