import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, describe, expect, it } from "vitest";
import { root } from "../repository.ts";
import { findPython } from "./engines.ts";

/** The lab's prediction beside a real fleet, from a sweep's log to the table; how near they are is not for a test of some seconds to judge. */

const found = findPython();
const isLinux = process.platform === "linux";
const missing = isLinux ? ("missing" in found ? found.missing : null) : "engines take turns by signals of Linux only";
const skipped = missing === null ? "" : ` (skipped: ${missing})`;

describe.skipIf(missing !== null)(`the lab's real fleet${skipped}`, () => {
  const folder = mkdtempSync(join(tmpdir(), "guidevane-lab-"));
  afterAll(() => rmSync(folder, { recursive: true }));

  async function lab(...flags: string[]): Promise<{ exit: number | null; out: string; log: string }> {
    const script = join(root, "scripts/real/lab.ts");
    const child = spawn(process.execPath, ["--conditions=@guidevane/source", script, folder, ...flags]);
    const [out, log] = [text(child.stdout), text(child.stderr)];
    const [exit] = (await once(child, "exit")) as [number | null];
    return { exit, out: await out, log: await log };
  }

  it("is driven and predicted by profiles of a sweep; what was measured is compared again without engines", async () => {
    writeFileSync(join(folder, "requests.csv"), sweepLog());
    const short = ["--let-sleep", "--seconds", "2", "--settle", "1", "--loads", "0.2"];
    const first = await lab(...short, "--within", "100000");
    expect(first, first.log).toMatchObject({ exit: 0 });
    for (const id of ENGINES) expect(first.out).toMatch(new RegExp(`^\\| ${id} +\\| \\d+ % / \\d+ %`, "m"));
    expect(first.out).toContain("none failed");
    const left = ["answers-20.json", "fleet-20.json", "profiles", "requests.csv", "speed.txt", "trace-20.csv"];
    expect(readdirSync(folder).sort()).toEqual(left);

    const again = await lab(...short, "--within", "0");
    expect(again.exit).toBe(1);
    expect(again.out.slice(again.out.indexOf("| engine"))).toBe(first.out.slice(first.out.indexOf("| engine")));
  }, 180_000);
});

const ENGINES = ["1x64", "2x96", "2x128", "2x192"];

/** A real sweep needs ten minutes: its levels, with so many requests as the fit wants. */
function sweepLog(): string {
  const rows = ["engine,workload,run,start_ms,prompt_tokens,output_tokens,ttft_ms,e2e_ms"];
  for (const [place, id] of ENGINES.entries()) {
    for (const [shape, prompt, output, levels] of SWEPT) {
      for (const level of levels) {
        const rateRps = 10 * level;
        for (let request = 0; request < 60; request++) {
          const ttftMs = (prompt / 5 + 4 * rateRps) * (1 + place / 3);
          const e2eMs = ttftMs + output * (1 + rateRps / 4) * (1 + place / 3);
          const startMs = (1000 * request) / rateRps;
          rows.push(
            [id, `${prompt}x${output}`, `${id}-${shape}-${level}`, startMs, prompt, output, ttftMs, e2eMs].join(),
          );
        }
      }
    }
  }
  return `${rows.join("\n")}\n`;
}

const SWEPT = [
  [0, 100, 16, [0.2, 0.35, 0.5, 0.65, 0.8]],
  [1, 220, 8, [0.25, 0.5, 0.75]],
] as const;
