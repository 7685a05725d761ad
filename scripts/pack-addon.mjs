#!/usr/bin/env node
/**
 * Packs each built addon as its platform's package, `@guidevane/native-<platform>`: at publish time, since a package that
 * is not in the registry can't stand among a committed manifest's optional dependencies (`npm ci` stops at it).
 *
 *     node scripts/pack-addon.mjs [FOLDER]      tarballs go to FOLDER, else to the present one; prints their names
 *
 * Publish these first, then @guidevane/native with `optionalDependencies` naming them at its own version.
 */
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const native = join(root, "native");
const { name, version, license, engines } = JSON.parse(readFileSync(join(native, "package.json"), "utf8"));
const destination = resolve(process.argv[2] ?? ".");

const addons = readdirSync(native).filter((file) => /^guidevane\..+\.node$/.test(file));
if (addons.length === 0) {
  console.error("no addon is built: run node scripts/build-addon.mjs");
  process.exitCode = 1;
}
mkdirSync(destination, { recursive: true });
for (const addon of addons) pack(addon);

function pack(addon) {
  const triple = addon.slice("guidevane.".length, -".node".length);
  const [os, cpu, abi = ""] = triple.split("-");
  const folder = join(native, "npm", triple);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  cpSync(join(native, addon), join(folder, addon));
  cpSync(join(root, "LICENSE"), join(folder, "LICENSE"));
  const libc = abi.startsWith("gnu") ? { libc: ["glibc"] } : abi.startsWith("musl") ? { libc: ["musl"] } : {};
  const manifest = {
    name: `${name}-${triple}`,
    version,
    description: `Guidevane's Rust addon for ${triple}`,
    license,
    engines,
    os: [os],
    cpu: [cpu],
    ...libc,
    main: addon,
    files: [addon],
  };
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  writeFileSync(join(folder, "README.md"), `# ${manifest.name}\n\n${manifest.description}; loaded by ${name}.\n`);
  const shell = process.platform === "win32";
  const run = spawnSync("npm", ["pack", "--pack-destination", destination], { cwd: folder, encoding: "utf8", shell });
  if (run.status !== 0) {
    console.error(run.error?.message ?? run.stderr);
    process.exitCode = 1;
  } else console.log(run.stdout.trim());
}
