import type { IncomingMessage, ServerResponse } from "node:http";
import {
  type DemandReport,
  GuidevaneError,
  knownNames,
  parseDemandReport,
  problem,
  showProblem,
} from "@guidevane/core";
import { AdminError, readJson, sendJson } from "./admin-http.ts";
import type { Control } from "./control.ts";

/** Takes a gateway's report in, or says why it does not count. */
export async function takeDemand(control: Control, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const report = parseReport(await readJson(request));
  if (!control.fleet.clusters.has(report.cluster))
    throw new AdminError(
      400,
      "bad_demand",
      showProblem(
        problem(
          "unknown_name",
          "cluster",
          report.cluster,
          `is not a cluster of the fleet file; ${knownNames(report.cluster, control.fleet.clusters.keys())}`,
        ),
      ),
    );
  refuseImplausible(control, report);
  sendJson(response, 200, { gateways: control.report(report) });
}

/** Counted, and logged once for as long as it lasts. */
function refuseImplausible({ published, claims, clock, conditions, metrics }: Control, report: DemandReport): void {
  const { cluster, gateway, windowMs } = report;
  const planned = published.current?.clusters.get(cluster);
  const plannedRps = (name: string) => planned?.cells.find((cell) => cell.class === name)?.demandRps ?? 0;
  const refused = claims.refuse(report, plannedRps, clock.nowMs());
  const subject = `demand of ${gateway} in ${cluster}`;
  if (refused === null) {
    conditions.ends(subject, "the gateway's reports are believed again");
    return;
  }
  metrics.demandRefused.inc({ cluster });
  const why = `classes.${refused.class}.offered: ${refused.offered} in ${windowMs} ms are not believed, at most ${refused.most} are`;
  conditions.begins(subject, "implausible", why, { gateway, cluster });
  throw new AdminError(400, "implausible_demand", why);
}

function parseReport(data: unknown): DemandReport {
  try {
    return parseDemandReport(data);
  } catch (error) {
    if (GuidevaneError.is(error)) throw new AdminError(400, error.code, error.message);
    throw error;
  }
}
