import type { ClassSpec, EngineSpec } from "./fleet.ts";

/** What rules an engine out for a class, and the sentence for a person. */
export interface Ineligible {
  readonly by: "model" | "capability" | "residency" | "compute" | "context" | "network";
  readonly message: string;
}

/**
 * Why this engine may not serve this class from a cluster at this distance, or null where it may. State that changes by
 * the minute (health, drain) is not asked here: it changes how much an engine takes, not whether it may.
 */
export function ineligibleFor(
  spec: Pick<ClassSpec, "model" | "needs">,
  engine: Pick<EngineSpec, "models" | "capabilities" | "residency" | "compute" | "maxContextTokens">,
  rttMs: number,
): Ineligible | null {
  const { needs } = spec;
  if (!engine.models.includes(spec.model)) return { by: "model", message: `does not serve ${spec.model}` };
  const lacking = needs.capabilities.find(
    (each) => engine.capabilities !== null && !engine.capabilities.includes(each),
  );
  if (lacking !== undefined) return { by: "capability", message: `lacks ${lacking}` };
  if (needs.residency.length > 0 && (engine.residency === null || !needs.residency.includes(engine.residency)))
    return {
      by: "residency",
      message: `residency ${engine.residency ?? "unset"} is not in ${needs.residency.join(", ")}`,
    };
  if (needs.compute.length > 0 && (engine.compute === null || !needs.compute.includes(engine.compute)))
    return { by: "compute", message: `compute ${engine.compute ?? "unset"} is not in ${needs.compute.join(", ")}` };
  if (engine.maxContextTokens !== null && engine.maxContextTokens < needs.contextTokens)
    return { by: "context", message: `holds ${engine.maxContextTokens} of ${needs.contextTokens} tokens` };
  if (needs.networkMs !== null && rttMs > needs.networkMs)
    return { by: "network", message: `is ${rttMs} ms away, ${needs.networkMs} ms allowed` };
  return null;
}
