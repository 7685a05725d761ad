import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { publishedPackages, root } from "./repository.ts";

/**
 * What ships, tested as it ships: every package packed from its dist, installed in an empty folder from the tarballs and
 * imported by a plain Node, without this repository's source condition.
 */

const run = promisify(execFile);
const packages = publishedPackages();
const folder = mkdtempSync(join(tmpdir(), "guidevane-packed-"));
const installed = join(folder, "node_modules");
/** By package, the files in its tarball. */
let packed: Readonly<Record<string, readonly string[]>> = {};

beforeAll(async () => {
  const unbuilt = packages.filter((each) => !existsSync(join(root, each.folder, "dist/index.js")));
  if (unbuilt.length > 0) throw new Error(`not built: ${unbuilt.map(({ name }) => name)}; run \`npm run build\` first`);
  const workspaces = packages.flatMap((each) => ["-w", each.manifest.name]);
  const { stdout } = await npm(["pack", "--json", "--pack-destination", folder, ...workspaces], root);
  packed = filesByPackage(JSON.parse(stdout));

  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "empty", private: true, type: "module" }));
  const tarballs = readdirSync(folder).filter((name) => name.endsWith(".tgz"));
  await npm(["install", "--prefer-offline", "--no-audit", "--no-fund", ...tarballs.map((name) => `./${name}`)], folder);
}, 240_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.each(packages)("the packed $name", ({ name, manifest }) => {
  it("has compiled code and types, and no source, test or build state", () => {
    const files = packed[manifest.name] ?? [];
    expect(files).toEqual(
      expect.arrayContaining(["package.json", "LICENSE", "README.md", "dist/index.js", "dist/index.d.ts"]),
    );
    expect(
      files.filter((file) => /^src\/|\.test\.|\.fixture\.|\/testing\/|tsbuildinfo|(?<!\.d)\.ts$/.test(file)),
    ).toEqual([]);
  });

  it("gives its public names to a plain import", async () => {
    const code = `console.log(JSON.stringify(Object.keys(await import(${JSON.stringify(manifest.name)})).sort()))`;
    const { stdout } = await plainNode(["--input-type=module", "-e", code]);
    const names = JSON.parse(stdout) as string[];
    // Kept in a file, so that adding or losing a name is seen in a change. `npx vitest run packed -u` writes it anew.
    await expect(`${names.join("\n")}\n`).toMatchFileSnapshot(`./public-names/${name}.txt`);
  });
});

describe("the packed program", () => {
  it("prints its commands", async () => {
    const { stdout } = await plainNode([join(installed, "@guidevane/cli/dist/main.js"), "--help"]);
    expect(stdout).toMatch(/^Usage: guidevane /);
  });

  it("is linked as guidevane", () => {
    expect(existsSync(join(installed, ".bin/guidevane"))).toBe(true);
  });
});

function npm(args: readonly string[], cwd: string): Promise<{ stdout: string }> {
  // Settings that an outer npm hands down would make the inner one work on the outer one's folder.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(npm_|NODE_OPTIONS$)/i.test(name)));
  const path = process.env.npm_execpath;
  return path !== undefined && basename(path) === "npm-cli.js"
    ? run(process.execPath, [path, ...args], { cwd, env, maxBuffer: 1 << 26 })
    : run("npm", args, { cwd, env, maxBuffer: 1 << 26 });
}

/** A Node as a user has it: in the folder where the packages are installed, none of the runner's flags. */
function plainNode(args: readonly string[]): Promise<{ stdout: string }> {
  const { NODE_OPTIONS: _flags, ...env } = process.env;
  return run(process.execPath, args, { cwd: folder, env });
}

interface PackReport {
  readonly name: string;
  readonly files: readonly { readonly path: string }[];
}

/** npm prints a list, or from version 12 on an object by name. */
function filesByPackage(report: readonly PackReport[] | Readonly<Record<string, PackReport>>): typeof packed {
  return Object.fromEntries(Object.values(report).map(({ name, files }) => [name, files.map(({ path }) => path)]));
}
