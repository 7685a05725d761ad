import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseProfile } from "@guidevane/core";
import { badUsage } from "./exit-code.ts";
import { showTable } from "./table.ts";

/** Profiles of common GPU and model pairs, fitted from public measurements (`docs/profiles.md`). */
const FOLDER = join(import.meta.dirname, "../profiles");

function shippedNames(): string[] {
  return readdirSync(FOLDER)
    .map((file) => file.replace(/\.yaml$/, ""))
    .sort();
}

/** Its file's text. @throws GuidevaneError `bad_usage` for a name that does not ship */
export function shippedProfile(name: string): string {
  if (!shippedNames().includes(name)) badUsage("profile", name, `must be one of ${shippedNames().join(", ")}`);
  return readFileSync(join(FOLDER, `${name}.yaml`), "utf8");
}

export function listShipped(): string {
  return showTable(
    ["profile", "sku", "model", "tokens in", "out", "work/s", "TTFT₀ ms", "TBOT₀ ms"],
    shippedNames().map((name) => {
      const profile = parseProfile(shippedProfile(name), name);
      const { sku, model, reference, capacityWps, ttftMs, tbotMs } = profile;
      return [
        name,
        sku ?? "",
        model ?? "",
        String(reference.promptTokens),
        String(reference.outputTokens),
        capacityWps.toFixed(2),
        ttftMs[0]![1].toFixed(0),
        tbotMs[0]![1].toFixed(1),
      ];
    }),
  );
}
