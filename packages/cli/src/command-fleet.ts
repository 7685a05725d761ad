import { fleetJsonSchema } from "@guidevane/core";
import type { Command } from "commander";
import { type FleetSummary, summariseFleet, type WorkRatio } from "./fleet-summary.ts";
import { readFleet } from "./read-fleet.ts";
import { showTable } from "./table.ts";

export function addFleet(program: Command): void {
  const fleet = program.command("fleet").description("look at a fleet file");
  fleet
    .command("schema")
    .description("print the fleet file's JSON Schema, for editors")
    .action(() => program.configureOutput().writeOut?.(`${JSON.stringify(fleetJsonSchema(), null, 2)}\n`));
  fleet
    .command("check")
    .description("check a fleet file and the files it names, and show what was understood")
    .argument("<file>", "fleet file")
    .option("--json", "print JSON")
    .action(async (file: string, flags: { json?: true }) => {
      const summary = summariseFleet(await readFleet(file));
      program.configureOutput().writeOut?.(flags.json ? `${JSON.stringify(summary, null, 2)}\n` : showSummary(summary));
    });
}

function showSummary(summary: FleetSummary): string {
  const parts = [
    showTable(
      ["engine", "kind", "region", "models", "profile", "replicas", "work/s", "state"],
      summary.engines.map((engine) => [
        engine.id,
        engine.kind,
        engine.region,
        engine.models.join(","),
        engine.profile ?? "(generic)",
        String(engine.replicas),
        showNumber(engine.capacityWps),
        engine.adminState,
      ]),
    ),
    showTable(
      ["class", "model", "priority", "work", "tokens in", "out", "requests/s"],
      summary.classes.map((each) => [
        each.name,
        each.model,
        String(each.priority),
        showNumber(each.work),
        showNumber(each.promptTokens),
        showNumber(each.outputTokens),
        showNumber(each.demandRps),
      ]),
    ),
    summary.ratios.map((ratio) => `${showRatio(ratio)}\n`).join(""),
    summary.warnings.map((warning) => `warning: ${warning}\n`).join(""),
    "ok\n",
  ];
  return parts.filter((part) => part !== "").join("\n");
}

function showRatio({ model, profile, sku, prefillPart, modelPrefillPart, off }: WorkRatio): string {
  const split = (part: number) => `${Math.round(part * 100)}:${Math.round((1 - part) * 100)}`;
  const distance = off === null ? "no ratio" : `${off >= 0 ? "+" : ""}${(off * 100).toFixed(0)} %`;
  return `prefill:decode of ${model} on ${sku ?? "?"} (${profile}): ${split(prefillPart)}, model's ${split(modelPrefillPart)}, off by ${distance}`;
}

function showNumber(value: number): string {
  return String(Number(value.toPrecision(6)));
}
