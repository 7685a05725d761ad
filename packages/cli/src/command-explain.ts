import type { OperatorAnswer } from "@guidevane/control";
import type { Explanation } from "@guidevane/optimizer";
import type { Command } from "commander";
import { controlClient, DEFAULT_CONTROL } from "./control-client.ts";
import { badUsage } from "./exit-code.ts";
import { type FleetExplanation, showFleetExplanation, showOperator } from "./fleet-explanation.ts";

interface ExplainFlags {
  control: string;
  of?: string;
  json?: true;
}

export function addExplain(program: Command): void {
  program
    .command("explain")
    .description("say why a cell's weights are what they are; without a cell, what the plan means for every cluster")
    .argument("[cluster]", "cluster of the fleet")
    .argument("[class]", "request class")
    .argument("[engine]", "one engine: why it gets what it gets")
    .option("--control <url>", "admin address of the control plane", DEFAULT_CONTROL)
    .option("--of <version>", "of an older version that is kept")
    .option("--json", "print JSON")
    .action(
      async (
        cluster: string | undefined,
        requestClass: string | undefined,
        engine: string | undefined,
        flags: ExplainFlags,
      ) => {
        if (cluster !== undefined && requestClass === undefined)
          badUsage("class", undefined, `name a class of ${cluster}, or no cluster`);
        const client = controlClient(flags.control, process.env);
        const answer = await client.get("/v1/explain", {
          cluster,
          class: requestClass,
          engine,
          version: flags.of,
        });
        program.configureOutput().writeOut?.(flags.json ? `${JSON.stringify(answer, null, 2)}\n` : await show(answer));
      },
    );
}

async function show(answer: unknown): Promise<string> {
  if (typeof answer === "object" && answer !== null && "clusters" in answer)
    return showFleetExplanation(answer as FleetExplanation);
  const { showExplanation } = await import("@guidevane/optimizer");
  const cell = answer as CellExplanation;
  return (cell.published ? "" : "advice: not published\n") + showExplanation(cell) + showOperator(heldIn(cell));
}

/** `GET /v1/explain` of a cell. */
type CellExplanation = Explanation & { readonly published: boolean; readonly operator: OperatorAnswer };

/** What an operator has said that touches this cell. */
function heldIn({ cluster, class: requestClass, engines, operator }: CellExplanation) {
  const ids = new Set(engines.map(({ engine }) => engine));
  return {
    ...operator,
    pins: operator.pins.filter((pin) => pin.cluster === cluster && pin.class === requestClass),
    engines: Object.fromEntries(Object.entries(operator.engines).filter(([id]) => ids.has(id))),
  };
}
