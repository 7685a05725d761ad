#!/usr/bin/env node
/**
 * Builds the Rust addon where Rust is, and says so in one line where it is not. The addon is an option: without it the
 * TypeScript twins are used. GUIDEVANE_REQUIRE_NATIVE=1 (CI) turns every "not built" into exit 1.
 *
 * Plain Node >= 18 without a package at import, since it runs before anything is known to be installed.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const native = resolve(dirname(fileURLToPath(import.meta.url)), "..", "native");
const required = process.env.GUIDEVANE_REQUIRE_NATIVE === "1";

process.exitCode = build();

function build() {
  if (spawnSync("cargo", ["--version"], { stdio: "ignore" }).status !== 0) return notBuilt("cargo not found");
  const cli = napiCli();
  if (cli === undefined) return notBuilt("@napi-rs/cli is not installed");

  // A folder of its own: the addon in use is replaced by one rename, never written to while a process has it mapped.
  const output = join(native, "target", `addon-${process.pid}`);
  mkdirSync(output, { recursive: true });
  try {
    const run = spawnSync(process.execPath, [cli, ...buildArguments(output)], {
      cwd: native,
      encoding: "utf8",
      maxBuffer: 1 << 28,
      env: { CARGO_NET_RETRY: "1", ...process.env, CARGO_TERM_COLOR: "never", FORCE_COLOR: "0", NO_COLOR: "1" },
    });
    const text = `${run.stdout ?? ""}${run.stderr ?? ""}`;
    const built = existsSync(output) ? readdirSync(output).filter((name) => name.endsWith(".node")) : [];
    if (run.status === 0 && built.length === 1) {
      install(output, built[0]);
      return 0;
    }
    if (isOurFault(text)) {
      removeStale();
      process.stderr.write(text);
      console.error("native: the addon does not compile, see above");
      return 1;
    }
    return notBuilt(run.error === undefined ? reasonIn(text) : run.error.message);
  } finally {
    rmSync(output, { recursive: true, force: true });
  }
}

function buildArguments(output) {
  const napi = ["build", "--platform", "--release", "--no-js", "--manifest-path", "crates/addon/Cargo.toml"];
  const places = ["--package-json-path", "package.json", "--output-dir", output, "--dts", "binding.d.ts"];
  return [...napi, ...places, "--", "--locked"];
}

/** Path of the napi program, or undefined where it is not installed. */
function napiCli() {
  const require = createRequire(join(native, "package.json"));
  for (const folder of require.resolve.paths("@napi-rs/cli") ?? []) {
    const manifest = join(folder, "@napi-rs", "cli", "package.json");
    if (!existsSync(manifest)) continue;
    const { bin } = JSON.parse(readFileSync(manifest, "utf8"));
    return join(dirname(manifest), typeof bin === "string" ? bin : bin.napi);
  }
  return undefined;
}

function install(output, name) {
  const target = join(native, name);
  const fresh = join(output, name);
  if (existsSync(target) && readFileSync(target).equals(readFileSync(fresh))) return;
  renameSync(fresh, target);
  console.log(`native: built ${name}`);
}

/** Compile errors of our own crates must be seen; a missing network, crate, linker or a too old Rust is the machine's. */
function isOurFault(text) {
  if (/linker .* not found/.test(text)) return false;
  return /could not compile `guidevane-/.test(text);
}

/** cargo's first error and its innermost cause, as one line. */
function reasonIn(text) {
  const lines = text.split("\n").map((line) => line.trim());
  const first = lines.find((line) => line.startsWith("error: "))?.slice("error: ".length);
  const cause = lines.lastIndexOf("Caused by:");
  const parts = [first ?? "cargo failed", cause === -1 ? undefined : lines[cause + 1]];
  return parts.filter((part) => part !== undefined && part !== "").join(": ");
}

function notBuilt(reason) {
  // An addon from an earlier build would be loaded, and what this line says would be untrue.
  removeStale();
  const line = `native: ${reason}, addon not built; the TypeScript twins are used`;
  if (!required) {
    console.log(line);
    return 0;
  }
  console.error(`${line}, but GUIDEVANE_REQUIRE_NATIVE=1`);
  return 1;
}

function removeStale() {
  for (const name of readdirSync(native)) {
    if (name.endsWith(".node")) rmSync(join(native, name), { force: true });
  }
}
