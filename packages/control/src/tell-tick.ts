import { type Publication, snapshotTag } from "@guidevane/core";
import type { Control } from "./control.ts";
import type { EngineState } from "./engine-state.ts";
import { keysMoved } from "./published.ts";
import type { HeldBecause, TickResult } from "./tick.ts";

/** Tells of a tick's result: the feed what was published, metrics and log how it went, the admin API what it may show. */
export function tellTick(control: Control, result: TickResult): void {
  const { conditions, metrics } = control;
  if (result.kind === "failed") {
    if (control.stopped) return;
    metrics.publishTotal.inc({ result: result.result });
    const kept = control.published.current?.version ?? null;
    conditions.begins("tick", `${result.result} ${result.cause}`, result.message, { kept });
    return;
  }
  const { gate, message, degraded } = result.plan;
  control.certified = { wallMs: control.clock.wallMs(), gate };
  if (result.kind === "published") {
    conditions.ends("tick", "ticks publish again");
    if (degraded === "") conditions.ends("solver", "plans are solved by the addon again");
    else conditions.begins("solver", degraded, `plans are solved in TypeScript: ${degraded}`);
    if (message === "") conditions.ends("plan", "the plan serves every cell again");
    else conditions.begins("plan", message, `published, but ${message}`);
    control.feed.send({ event: "snapshot", data: { tag: snapshotTag(result.stored) } });
    control.advice = null;
    return;
  }
  conditions.ends("tick", "ticks find plans again");
  if (result.kind === "unmoved") {
    metrics.unmoved(gate.certificate?.gap ?? null);
    control.advice = null;
  } else {
    metrics.publishTotal.inc({ result: result.why });
    if (gate.certificate !== null) metrics.gapRatio.set(gate.certificate.gap);
    control.advice = result.publication;
    tellAdvice(control, result.why, result.publication);
  }
}

/** What would be published: a line a tick where advice is all that is asked for. */
function tellAdvice(control: Control, why: HeldBecause, publication: Publication): void {
  if (why !== "advise") return;
  const [snapshot] = publication.clusters.values();
  const present = control.published.current;
  const moved = present === null ? null : keysMoved(present, publication);
  const { expectedLatencyMs, gap } = snapshot?.certificate ?? {};
  control.logger.info({ expectedLatencyMs, gap, keysMoved: moved }, "advice: solved and verified, not published");
}

/** Engines that a tick plans for as configured, since nobody can say that they are there. */
export function tellFailOpen({ conditions }: Control, states: ReadonlyMap<string, EngineState>): void {
  const unreached = [...states.values()]
    .filter(({ failOpen }) => failOpen)
    .map(({ id }) => id)
    .join(", ");
  if (unreached === "") conditions.ends("reach", "engines can be reached again, or gateways call them dead");
  else
    conditions.begins(
      "reach",
      unreached,
      `no engine of a model can be reached from here; planned as configured: ${unreached}`,
    );
}
