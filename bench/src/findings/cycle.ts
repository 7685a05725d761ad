import { POLICIES } from "@guidevane/simulator";
import { labFleetFile } from "./fleet.ts";
import { lost, ms, percent, runOf } from "./runs.ts";
import { named, printTable } from "./show.ts";

/** The proportional controller in the lab: gain × delay at 70 and 85 % of the capacity. The threshold is held by a test. */
export async function cycleFinding(only: readonly number[] = []): Promise<void> {
  const fleet = await labFleetFile();
  for (const load of only.length > 0 ? only : [0.7, 0.85]) {
    const rows = [0.02, 0.05, 0.2, 0.5].flatMap((gain) =>
      [0, 1, 3].map((delay) => {
        const figures = runOf(fleet, named(POLICIES, "controller"), {
          synthetic: { load, seconds: 900 },
          values: { gain, delay, smoothing: 1 },
        });
        const swing = Object.values(figures.timeline.utilisation).map((list) => {
          const mean = list.reduce((sum, each) => sum + each, 0) / list.length;
          return Math.sqrt(list.reduce((sum, each) => sum + (each - mean) ** 2, 0) / list.length);
        });
        const widest = Math.max(...swing);
        return [
          String(gain),
          String(delay),
          percent(figures.churnPerMin),
          figures.reversalsPerMin.toFixed(1),
          percent(widest),
          ms(figures.e2e?.meanMs),
          ms(figures.e2e?.p99Ms),
          percent(lost(figures)),
        ];
      }),
    );
    const ours = runOf(fleet, "guidevane", { synthetic: { load, seconds: 900 } });
    rows.push([
      "guidevane",
      "",
      percent(ours.churnPerMin),
      ours.reversalsPerMin.toFixed(1),
      "",
      ms(ours.e2e?.meanMs),
      ms(ours.e2e?.p99Ms),
      percent(lost(ours)),
    ]);
    printTable(
      `controller at ${load}`,
      [
        "gain",
        "delay, ticks",
        "churn/min",
        "reversals/min",
        "widest swing of an engine's utilisation (σ)",
        "E2E mean, ms",
        "p99",
        "lost",
      ],
      rows,
    );
  }
}
