import { GuidevaneError } from "@guidevane/core";
import type { Decision } from "@guidevane/gateway";
import type { Command } from "commander";
import { adminClient } from "./control-client.ts";
import { badUsage, CommandFailure } from "./exit-code.ts";
import { showDecision } from "./why-text.ts";

/** Admin addresses of the gateways of a `guidevane up` on its default ports, one a cluster. */
const DEFAULT_GATEWAYS: readonly string[] = Array.from({ length: 8 }, (_, at) => `http://127.0.0.1:${8180 + at}`);

interface WhyFlags {
  gateway?: string[];
  json?: true;
}

export function addWhy(program: Command): void {
  program
    .command("why")
    .description("say where a request went, and why")
    .argument("<request-id>", "the answer's x-request-id")
    .option(
      "--gateway <url...>",
      "admin address of the gateway that served it; several are asked in turn (default: those of `up`)",
    )
    .option("--json", "print JSON")
    .action(async (id: string, flags: WhyFlags) => {
      if (!/^[A-Za-z0-9._:-]{1,128}$/.test(id)) badUsage("request-id", id, "is no request id");
      const decision = await find(id, flags.gateway ?? DEFAULT_GATEWAYS, flags.gateway !== undefined);
      program
        .configureOutput()
        .writeOut?.(flags.json ? `${JSON.stringify(decision, null, 2)}\n` : showDecision(decision));
    });
}

/**
 * The first gateway's answer that knows the request.
 *
 * @param isNamed each of them was named: then one that does not answer is a failure, else it is just not there
 */
async function find(id: string, gateways: readonly string[], isNamed: boolean): Promise<Decision> {
  let unknown: GuidevaneError | null = null;
  let unreachable: CommandFailure | null = null;
  for (const gateway of gateways) {
    try {
      const client = adminClient(gateway, process.env, "gateway", "--gateway");
      return (await client.get(`/v1/decisions/${encodeURIComponent(id)}`)) as Decision;
    } catch (error) {
      if (GuidevaneError.is(error) && error.message.includes(id)) unknown = error;
      else if (error instanceof CommandFailure && !isNamed) unreachable ??= error;
      else throw error;
    }
  }
  throw unknown ?? unreachable ?? new CommandFailure("no gateway was named");
}
