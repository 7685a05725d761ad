import { existsSync } from "node:fs";
import { guidevaneWith, type PolicyDefinition } from "@guidevane/simulator";
import { labFleetFile } from "./fleet.ts";
import { figures, MOONCAKE, type Prompts, promptsOf, traceAt, traceText } from "./prefixes.ts";
import { ms, percent } from "./runs.ts";
import { printTable } from "./show.ts";

const SEEDS = [1, 2];

/** How often engines that nothing ails are penalised for slowness behind long prompts, and what that costs. */
export async function penaltiesFinding(): Promise<void> {
  const path = traceAt(MOONCAKE.file);
  if (!existsSync(path)) {
    process.stdout.write(`\n${MOONCAKE.file}: not there; set GUIDEVANE_DATA\n`);
    return;
  }
  const lab = await labFleetFile();
  const text = traceText(path);
  const rows = SEEDS.flatMap((seed) => {
    const prompts = promptsOf(lab, text, { name: MOONCAKE.file, speed: MOONCAKE.speed, seed });
    return [1, 2].map((gateways) => [String(seed), String(gateways), ...cells(prompts, gateways)]);
  });
  const figuresHead = ["prefixes found", "without penalties", "E2E mean, ms", "without"];
  printTable(
    "Mooncake's: slow penalties of healthy engines",
    ["seed", "gateways a cluster", "penalties", ...figuresHead],
    rows,
  );
}

function cells(prompts: Prompts, gateways: number): string[] {
  const { policy, count } = counting(guidevaneWith("judged", {}));
  const [judged, unjudged] = [policy, guidevaneWith("unjudged", { penalties: false })].map((each) =>
    figures(prompts, each, gateways),
  );
  const found = [judged!, unjudged!].map(({ hitPart }) => percent(hitPart));
  return [String(count()), ...found, ms(judged!.e2e?.meanMs), ms(unjudged!.e2e?.meanMs)];
}

/** Counts the times that a gateway reports a slow factor below 1 after one of 1: reports are more frequent than returns. */
function counting(of: PolicyDefinition): { policy: PolicyDefinition; count: () => number } {
  let penalties = 0;
  const policy: PolicyDefinition = {
    ...of,
    create(world, values) {
      const made = of.create(world, values);
      const report = made.report?.bind(made);
      if (report === undefined) return made;
      const slow = new Set<string>();
      made.report = (gateway) => {
        const engines = report(gateway);
        for (const [id, { slowFactor }] of Object.entries(engines)) {
          const pair = `${gateway} ${id}`;
          if (slowFactor === 1) slow.delete(pair);
          else if (!slow.has(pair)) {
            slow.add(pair);
            penalties += 1;
          }
        }
        return engines;
      };
      return made;
    },
  };
  return { policy, count: () => penalties };
}
