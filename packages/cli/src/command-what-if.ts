import type { Command } from "commander";
import { controlClient, DEFAULT_CONTROL } from "./control-client.ts";
import { badUsage } from "./exit-code.ts";
import { showWhatIf } from "./what-if-text.ts";

interface WhatIfFlags {
  drain: string[];
  loseRegion: string[];
  demand: string[];
  capacity: string[];
  newEngine: string[];
  control: string;
  json?: true;
}

export function addWhatIf(program: Command): void {
  const many = (value: string, before: string[]) => [...before, value];
  program
    .command("what-if")
    .description("plan beside the running loop as if something had happened: what moves, and what it costs")
    .option("--drain <engine>", "an engine drained; may be repeated, as may all that follow", many, [])
    .option("--lose-region <region>", "every engine of a region lost", many, [])
    .option(
      "--demand <[cluster/class=]±n%>",
      "demand up or down, of all or of one cell (either name may be *)",
      many,
      [],
    )
    .option("--capacity <[engine=]±n%>", "capacity up or down, of all or of one engine", many, [])
    .option("--new-engine <id=like[@region]>", "one more engine, like one that there is", many, [])
    .option("--control <url>", "admin address of the control plane", DEFAULT_CONTROL)
    .option("--json", "print JSON")
    .action(async (flags: WhatIfFlags) => {
      const changes = changesOf(flags);
      if (changes.length === 0) badUsage("what-if", undefined, "name something that happens: see --help");
      const answer = await controlClient(flags.control, process.env).post("/v1/what-if", { changes });
      const text = flags.json
        ? `${JSON.stringify(answer, null, 2)}\n`
        : showWhatIf(answer as Parameters<typeof showWhatIf>[0]);
      program.configureOutput().writeOut?.(text);
    });
}

/** Flags as the changes of `POST /v1/what-if`. @throws GuidevaneError `bad_usage` */
export function changesOf(flags: Pick<WhatIfFlags, "drain" | "loseRegion" | "demand" | "capacity" | "newEngine">) {
  return [
    ...flags.newEngine.map((text) => {
      const match = /^([^=@]+)=([^=@]+)(?:@([^=@]+))?$/.exec(text);
      if (match === null) badUsage("--new-engine", text, "must be ID=LIKE or ID=LIKE@REGION");
      const [, engine, like, region] = match;
      return { kind: "new-engine", engine, like, ...(region === undefined ? {} : { region }) };
    }),
    ...flags.drain.map((engine) => ({ kind: "drain", engine })),
    ...flags.loseRegion.map((region) => ({ kind: "lose-region", region })),
    ...flags.demand.map((text) => {
      const [where, factor] = splitFactor("--demand", text);
      if (where === null) return { kind: "demand", factor };
      const [cluster, requestClass, ...rest] = where.split("/");
      if (!cluster || !requestClass || rest.length > 0)
        badUsage("--demand", text, "must be ±N% or CLUSTER/CLASS=±N%, either name may be *");
      return {
        kind: "demand",
        factor,
        ...(cluster === "*" ? {} : { cluster }),
        ...(requestClass === "*" ? {} : { class: requestClass }),
      };
    }),
    ...flags.capacity.map((text) => {
      const [engine, factor] = splitFactor("--capacity", text);
      return { kind: "capacity", factor, ...(engine === null ? {} : { engine }) };
    }),
  ];
}

/** `[NAME=]±N%` as the name and the factor. */
function splitFactor(flag: string, text: string): [string | null, number] {
  const match = /^(?:(.+)=)?([+-]\d+(?:\.\d+)?)%$/.exec(text);
  if (match === null) badUsage(flag, text, "must end in a percentage with its sign, such as +30% or -20%");
  const percent = Number(match[2]);
  if (percent < -100) badUsage(flag, text, "can't fall by more than 100 %");
  return [match[1] ?? null, 1 + percent / 100];
}
