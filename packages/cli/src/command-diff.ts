import type { Command } from "commander";
import { controlClient, DEFAULT_CONTROL } from "./control-client.ts";
import { showDiff } from "./diff-text.ts";

export function addDiff(program: Command): void {
  program
    .command("diff")
    .description("say which inputs changed between two versions, and how much of each weight's move each explains")
    .argument("<from>", "older version")
    .argument("<to>", "newer version")
    .option("--control <url>", "admin address of the control plane", DEFAULT_CONTROL)
    .option("--json", "print JSON")
    .action(async (from: string, to: string, flags: { control: string; json?: true }) => {
      const answer = await controlClient(flags.control, process.env).get("/v1/diff", { from, to });
      const text = flags.json
        ? `${JSON.stringify(answer, null, 2)}\n`
        : showDiff(answer as Parameters<typeof showDiff>[0]);
      program.configureOutput().writeOut?.(text);
    });
}
