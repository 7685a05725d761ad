import { cpus } from "node:os";
import { parseArgs } from "node:util";
import { killEngine } from "../../test/src/stress/killed-engine.ts";
import { soak } from "../../test/src/stress/soak.ts";
import { showKilledEngine, showSoak } from "./text.ts";

/**
 * `npm run stress -- killed-engine|soak [options]`: real processes under load, parts of which are killed. Prints what
 * clients saw, as tables; docs/stress.md tells how to read them. Ends with 1 where something happened that must not.
 */

const OPTIONS = {
  rps: { type: "string" },
  threads: { type: "string", default: "2" },
  minutes: { type: "string", default: "30" },
} as const;

const runs: Readonly<Record<string, (flags: Flags) => Promise<{ text: string; good: boolean }>>> = {
  async "killed-engine"({ rps = 200, threads }) {
    const seen = await killEngine({
      rateRps: rps,
      keys: 2000,
      settleMs: 3000,
      awayMs: 60_000,
      watchMs: 20_000,
      threads,
    });
    return showKilledEngine(seen, rps);
  },
  async soak({ rps = 40, threads, minutes }) {
    return showSoak(
      await soak({ rateRps: rps, threads, minutes, onNote: (note) => console.error(note) }),
      rps,
      minutes,
    );
  },
};

interface Flags {
  readonly rps: number | undefined;
  readonly threads: number;
  readonly minutes: number;
}

const { values, positionals } = parseArgs({ options: OPTIONS, allowPositionals: true });
const run = Object.hasOwn(runs, positionals[0] ?? "") ? runs[positionals[0]!] : undefined;
const flags = {
  rps: values.rps === undefined ? undefined : Number(values.rps),
  threads: Number(values.threads),
  minutes: Number(values.minutes),
};
const wrong = Object.entries(flags).find(([, value]) => value !== undefined && !(value > 0));
if (run === undefined || positionals.length > 1 || wrong !== undefined) {
  const why =
    wrong === undefined ? `name one of ${Object.keys(runs).join(", ")}` : `--${wrong[0]} must be a number above 0`;
  console.error(`stress: ${why}`);
  process.exitCode = 2;
} else {
  const { text, good } = await run(flags);
  const [{ model } = { model: "unknown" }] = cpus();
  console.log(`${text}\n${cpus().length} cores (${model.trim()}), Node ${process.version}`);
  process.exitCode = good ? 0 : 1;
}
