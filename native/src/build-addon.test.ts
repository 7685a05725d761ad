import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";

const repository = fileURLToPath(new URL("../..", import.meta.url));
const made: string[] = [];
afterEach(() => {
  for (const folder of made.splice(0)) rmSync(folder, { recursive: true, force: true });
});

const NOT_BUILT = "addon not built; the TypeScript twins are used";

/** A repository of its own with an addon of an earlier build: the script works beside where it stands. */
function repositoryWith({ cargo, napi }: { cargo?: string; napi: boolean }) {
  const folder = mkdtempSync(join(tmpdir(), "guidevane-build-"));
  made.push(folder);
  for (const name of ["scripts", "native/crates/addon", "bin"]) mkdirSync(join(folder, name), { recursive: true });
  for (const file of ["scripts/build-addon.mjs", "native/package.json", "native/crates/addon/Cargo.toml"])
    cpSync(join(repository, file), join(folder, file));
  if (napi) symlinkSync(join(repository, "node_modules"), join(folder, "node_modules"), "junction");
  if (cargo !== undefined) writeFileSync(join(folder, "bin", "cargo"), `#!/bin/sh\n${cargo}\n`, { mode: 0o755 });
  const stale = join(folder, "native", "guidevane.plan9-mips.node");
  writeFileSync(stale, "an earlier build");
  const run = (environment: Record<string, string> = {}) => {
    const path = cargo === undefined ? join(folder, "bin") : [join(folder, "bin"), "/usr/bin", "/bin"].join(delimiter);
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(folder, "scripts", "build-addon.mjs")], {
      encoding: "utf8",
      env: { PATH: path, ...environment },
    });
    return { status, stdout, stderr, hasAddon: existsSync(stale) };
  };
  return { run };
}

describe("building the addon", () => {
  it("says in one line that there is no cargo, and leaves no older addon behind that line", () => {
    const { run } = repositoryWith({ napi: true });
    expect(run()).toEqual({
      status: 0,
      stdout: `native: cargo not found, ${NOT_BUILT}\n`,
      stderr: "",
      hasAddon: false,
    });
  });

  it("fails instead where the addon is required", () => {
    const { run } = repositoryWith({ napi: true });
    const { status, stdout, stderr } = run({ GUIDEVANE_REQUIRE_NATIVE: "1" });
    expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
    expect(stderr).toBe(`native: cargo not found, ${NOT_BUILT}, but GUIDEVANE_REQUIRE_NATIVE=1\n`);
  });

  const shell = process.platform === "win32" ? "skipped: needs a shell" : "with a cargo of its own";

  it.skipIf(process.platform === "win32")(`says that napi is not installed (${shell})`, () => {
    const { run } = repositoryWith({ cargo: "exit 0", napi: false });
    expect(run()).toMatchObject({ status: 0, stdout: `native: @napi-rs/cli is not installed, ${NOT_BUILT}\n` });
  });

  it.skipIf(process.platform === "win32")(
    `gives cargo's reason in one line when crates are out of reach (${shell})`,
    () => {
      const { run } = repositoryWith({
        cargo: `[ "$1" = --version ] && exit 0
echo 'error: failed to get \`napi\` as a dependency of package \`guidevane-addon\`' >&2
echo 'Caused by:' >&2
echo '  could not resolve host' >&2
exit 101`,
        napi: true,
      });
      const reason = "failed to get `napi` as a dependency of package `guidevane-addon`: could not resolve host";
      expect(run()).toEqual({ status: 0, stdout: `native: ${reason}, ${NOT_BUILT}\n`, stderr: "", hasAddon: false });
    },
  );
});
