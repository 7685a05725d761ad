import { type Fleet, type Profile, profileOf } from "@guidevane/core";

/** What a fleet file was understood to say. Plain data: `fleet check --json` prints it. */
export interface FleetSummary {
  readonly clusters: readonly { readonly name: string; readonly region: string }[];
  readonly engines: readonly EngineSummary[];
  readonly classes: readonly ClassSummary[];
  readonly ratios: readonly WorkRatio[];
  readonly warnings: readonly string[];
}

export interface EngineSummary {
  readonly id: string;
  readonly kind: string;
  readonly region: string;
  readonly models: readonly string[];
  /** null = the generic curve. */
  readonly profile: string | null;
  readonly replicas: number;
  /** Work units/s of all configured replicas. */
  readonly capacityWps: number;
  readonly adminState: string;
}

export interface ClassSummary {
  readonly name: string;
  readonly model: string;
  readonly priority: number;
  readonly work: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** Of all clusters, as the fleet file says. */
  readonly demandRps: number;
}

/**
 * How a profile splits the work of the reference request, against the model's first profile in file order, by which
 * classes without `work` are weighed. One `work` per class assumes that all are alike.
 */
export interface WorkRatio {
  readonly model: string;
  readonly profile: string;
  readonly sku: string | null;
  /** Prefill's part of the reference request's work, 0..1, and that of the model's first profile. */
  readonly prefillPart: number;
  readonly modelPrefillPart: number;
  /** Own prefill:decode ratio ÷ the model's, − 1; null where they differ and one has no decode work, or the model's no prefill. */
  readonly off: number | null;
}

export function summariseFleet(fleet: Fleet): FleetSummary {
  const ratios = workRatios(fleet);
  return {
    clusters: [...fleet.clusters.values()],
    engines: [...fleet.engines.values()].map((engine) => ({
      id: engine.id,
      kind: engine.kind,
      region: engine.region,
      models: engine.models,
      profile: engine.profile,
      replicas: engine.replicas,
      capacityWps: engine.capacityWps * engine.replicas,
      adminState: engine.adminState,
    })),
    classes: [...fleet.classes.values()].map(({ name, model, priority, work, promptTokens, outputTokens }) => {
      const demandRps = [...fleet.demandRps.values()].reduce((sum, byClass) => sum + (byClass.get(name) ?? 0), 0);
      return { name, model, priority, work, promptTokens, outputTokens, demandRps };
    }),
    ratios,
    warnings: [...fleet.warnings, ...referenceWarnings(fleet)],
  };
}

function profilesByModel(fleet: Fleet): Map<string, Profile[]> {
  const byModel = new Map<string, Profile[]>();
  for (const engine of fleet.engines.values()) {
    if (engine.profile === null) continue;
    for (const model of engine.models) {
      const profiles = byModel.get(model) ?? [];
      const profile = profileOf(fleet, engine);
      if (!profiles.includes(profile)) profiles.push(profile);
      byModel.set(model, profiles);
    }
  }
  return byModel;
}

function workRatios(fleet: Fleet): WorkRatio[] {
  return [...profilesByModel(fleet)].flatMap(([model, profiles]) =>
    profiles.map((profile) => {
      const ratio = workRatio(profile);
      const modelRatio = workRatio(profiles[0]!);
      return {
        model,
        profile: profile.profile,
        sku: profile.sku,
        prefillPart: prefillPart(profile),
        modelPrefillPart: prefillPart(profiles[0]!),
        off: offBy(ratio, modelRatio),
      };
    }),
  );
}

function offBy(ratio: number, modelRatio: number): number | null {
  if (ratio === modelRatio) return 0;
  return Number.isFinite(ratio) && Number.isFinite(modelRatio) && modelRatio > 0 ? ratio / modelRatio - 1 : null;
}

function workRatio({ work }: Profile): number {
  return work.prefillPerKtok / work.decodePerKtok;
}

function prefillPart({ work, reference }: Profile): number {
  const prefill = work.prefillPerKtok * reference.promptTokens;
  return prefill / (prefill + work.decodePerKtok * reference.outputTokens);
}

function referenceWarnings(fleet: Fleet): string[] {
  return [...profilesByModel(fleet)].flatMap(([model, profiles]) => {
    const first = profiles[0]!;
    return profiles
      .filter(
        ({ reference }) =>
          reference.promptTokens !== first.reference.promptTokens ||
          reference.outputTokens !== first.reference.outputTokens,
      )
      .map(
        ({ profile, reference }) =>
          `profiles of ${model} differ in the request that is 1.0 work: ${profile} has ${reference.promptTokens}/${reference.outputTokens} tokens, ${first.profile} ${first.reference.promptTokens}/${first.reference.outputTokens}`,
      );
  });
}
