import { cpus } from "node:os";
import { parseArgs } from "node:util";
import { killEngine } from "../../test/src/stress/killed-engine.ts";
import { runScenarios, SCENARIOS, type ScenarioRow } from "../../test/src/stress/scenarios.ts";
import { soak } from "../../test/src/stress/soak.ts";
import { showKilledEngine, showScenarios, showSoak } from "./text.ts";

/**
 * `npm run stress -- killed-engine|scenarios|soak [options]`: real processes under load, parts of which are killed. Prints what
 * clients saw, as tables; docs/stress.md tells how to read them. Ends with 1 where something happened that must not.
 */

const OPTIONS = {
  rps: { type: "string" },
  threads: { type: "string", default: "2" },
  seconds: { type: "string", default: "20" },
  "control-seconds": { type: "string", default: "60" },
  only: { type: "string", multiple: true },
  keys: { type: "string", default: "2000" },
  minutes: { type: "string", default: "30" },
} as const;

/** Requests take 0.4 s where nothing is loaded. */
const SLOWNESS = 8;

const runs: Readonly<Record<string, (flags: Flags) => Promise<{ text: string; good: boolean }>>> = {
  async "killed-engine"({ rps = 200, threads, keys, seconds }) {
    const times = { settleMs: 2000, awayMs: seconds * 1000, watchMs: 12_000 };
    const seen = await killEngine({ rateRps: rps, keys, threads, slowness: SLOWNESS, ...times });
    return showKilledEngine(seen, rps);
  },
  async scenarios({ rps = 20, threads, seconds, controlSeconds, only }) {
    const rows: ScenarioRow[] = [];
    const times = { goneMs: seconds * 1000, controlGoneMs: controlSeconds * 1000 };
    await runScenarios({ rateRps: rps, threads, ...times, ...(only === undefined ? {} : { names: only }) }, (row) => {
      rows.push(row);
      console.error(JSON.stringify(row));
    });
    return showScenarios(rows, rps);
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
  readonly keys: number;
  readonly seconds: number;
  readonly controlSeconds: number;
  readonly only: readonly string[] | undefined;
}

// A signal's own end would leave the processes behind.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));

const { values, positionals } = parseArgs({ options: OPTIONS, allowPositionals: true });
const run = Object.hasOwn(runs, positionals[0] ?? "") ? runs[positionals[0]!] : undefined;
const numbers = {
  rps: values.rps === undefined ? undefined : Number(values.rps),
  threads: Number(values.threads),
  minutes: Number(values.minutes),
  keys: Number(values.keys),
  seconds: Number(values.seconds),
  controlSeconds: Number(values["control-seconds"]),
};
const unknown = values.only?.find((name) => !Object.hasOwn(SCENARIOS, name));
const wrong = Object.entries(numbers).find(([, value]) => value !== undefined && !(value > 0));
if (run === undefined || positionals.length > 1) refuse(`name one of ${Object.keys(runs).join(", ")}`);
else if (wrong !== undefined) refuse(`${JSON.stringify(wrong[0])} must be a number above 0 (got ${wrong[1]})`);
else if (unknown !== undefined)
  refuse(`--only ${JSON.stringify(unknown)}: there are ${Object.keys(SCENARIOS).join(", ")}`);
else {
  const { text, good } = await run({ ...numbers, only: values.only });
  const [{ model } = { model: "unknown" }] = cpus();
  console.log(`${text}\n${cpus().length} cores (${model.trim()}), Node ${process.version}`);
  process.exitCode = good ? 0 : 1;
}

function refuse(why: string): void {
  console.error(`stress: ${why}`);
  process.exitCode = 2;
}
