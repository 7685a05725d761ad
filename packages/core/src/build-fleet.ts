import { refuse } from "./document.ts";
import { ineligibleFor } from "./eligible.ts";
import { type InputProblem, problem } from "./errors.ts";
import type { ClassSpec, ClusterSpec, EngineSpec, Fleet } from "./fleet.ts";
import type { FleetDocument } from "./fleet-schema.ts";
import { type Network, rttBetween } from "./network.ts";
import { GENERIC_PROFILE, type Profile, workOf } from "./profile.ts";
import type { EngineKind } from "./words.ts";

/**
 * The fleet of a document whose every key is right by itself: what remains is what keys say of each other.
 *
 * @throws GuidevaneError `bad_fleet`, naming each path and value
 */
export function buildFleet(
  document: FleetDocument,
  profiles: Map<string, Profile>,
  network: Network,
  name: string,
): Fleet {
  const problems: InputProblem[] = [];
  const clusters = new Map(
    Object.entries(document.clusters).map(([id, { region }]) => [id, { name: id, region }] as const),
  );
  const engines = new Map<string, EngineSpec>();
  for (const [id, raw] of Object.entries(document.engines)) engines.set(id, buildEngine(id, raw, profiles, problems));
  const classes = buildClasses(document, engines, profiles);

  problems.push(
    ...demandProblems(document, clusters, classes),
    ...aliasProblems(document, classes),
    ...Object.keys(document.classes).flatMap((id) => unservable(classes.get(id)!, engines, clusters, network)),
  );
  refuse("bad_fleet", name, problems);
  return {
    clusters,
    engines,
    classes,
    aliases: new Map(Object.entries(document.aliases)),
    network,
    profiles,
    demandRps: new Map(
      Object.entries(document.demandRps).map(([cluster, byClass]) => [cluster, new Map(Object.entries(byClass))]),
    ),
    policy: document.policy,
    // Where anybody may be a client nobody is distrusted more than anybody else; with keys a tenant is who has the key.
    gateway: {
      ...document.gateway,
      trustHeaders: document.gateway.trustHeaders ?? document.gateway.clientKeys === undefined,
    },
    warnings: [
      ...genericCurves(engines),
      ...foreignProfiles(engines, profiles),
      ...guessedRoundTrips(engines, clusters, network),
      ...excessDemand(document, engines, classes),
    ],
  };
}

/** An alias names a model, and is no model's own name: which of the two was meant would be a guess. */
function aliasProblems(document: FleetDocument, classes: ReadonlyMap<string, ClassSpec>): InputProblem[] {
  const models = new Set([...classes.values()].map(({ model }) => model));
  return Object.entries(document.aliases).flatMap(([alias, model]) => {
    if (models.has(alias))
      return [problem("invalid_value", `aliases.${alias}`, alias, "is the name of a model itself")];
    return models.has(model)
      ? []
      : [problem("unknown_name", `aliases.${alias}`, model, "is not a model of this fleet")];
  });
}

function demandProblems(
  document: FleetDocument,
  clusters: ReadonlyMap<string, ClusterSpec>,
  classes: ReadonlyMap<string, ClassSpec>,
): InputProblem[] {
  return Object.entries(document.demandRps).flatMap(([cluster, byClass]) => {
    const at = `demandRps.${cluster}`;
    const strangers = Object.keys(byClass).filter((requestClass) => !classes.has(requestClass));
    return [
      ...(clusters.has(cluster) ? [] : [problem("unknown_name", at, cluster, "is not a cluster")]),
      ...strangers.map((each) => problem("unknown_name", `${at}.${each}`, each, "is not a class")),
    ];
  });
}

function genericCurves(engines: ReadonlyMap<string, EngineSpec>): string[] {
  const without = [...engines.values()].filter(({ profile }) => profile === null);
  return without.map(({ id }) => `engines.${id} has no profile: the generic curve is used`);
}

function foreignProfiles(engines: ReadonlyMap<string, EngineSpec>, profiles: ReadonlyMap<string, Profile>): string[] {
  return [...engines.values()].flatMap(({ id, models, profile }) => {
    const measured = profile === null ? null : (profiles.get(profile)?.model ?? null);
    return measured === null || models.includes(measured)
      ? []
      : [`engines.${id} serves ${models.join(", ")} by a profile measured for ${measured}`];
  });
}

/** Of all models together: an engine may serve several, so that a model alone says little. */
function excessDemand(
  document: FleetDocument,
  engines: ReadonlyMap<string, EngineSpec>,
  classes: ReadonlyMap<string, ClassSpec>,
): string[] {
  const rates = Object.values(document.demandRps).flatMap((byClass) => Object.entries(byClass));
  const demandWps = rates.reduce((sum, [name, rps]) => sum + rps * (classes.get(name)?.work ?? 0), 0);
  const active = [...engines.values()].filter(({ adminState }) => adminState === "active");
  const capacityWps = active.reduce((sum, engine) => sum + engine.capacityWps * engine.replicas, 0);
  return demandWps > capacityWps
    ? [
        `demandRps asks for ${round(demandWps)} units of work/s and active engines hold ${round(capacityWps)}: some is shed`,
      ]
    : [];
}

function round(value: number): number {
  return Number(value.toPrecision(4));
}

function guessedRoundTrips(
  engines: ReadonlyMap<string, EngineSpec>,
  clusters: ReadonlyMap<string, ClusterSpec>,
  network: Network,
): string[] {
  return [...clusters.values()].flatMap((cluster) =>
    [...engines.values()]
      .filter(({ region }) => !rttBetween(network, cluster, region).known)
      .map(
        ({ id, region }) =>
          `no round trip from cluster ${cluster.name} (${cluster.region}) to ${region}: ${network.defaultRttMs} ms assumed for engine ${id}`,
      ),
  );
}

function buildEngine(
  id: string,
  raw: FleetDocument["engines"][string],
  profiles: ReadonlyMap<string, Profile>,
  problems: InputProblem[],
): EngineSpec {
  const profile = raw.profile === undefined ? undefined : profiles.get(raw.profile);
  if (raw.profile !== undefined && profile === undefined)
    problems.push(problem("unknown_profile", `engines.${id}.profile`, raw.profile, "is not under `profiles`"));
  if (raw.profile === undefined && raw.capacityWps === undefined)
    problems.push(
      problem("missing_key", `engines.${id}.capacityWps`, undefined, "is required where there is no profile"),
    );
  const url = new URL(raw.url);
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "")
    problems.push(
      problem(
        "invalid_value",
        `engines.${id}.url`,
        // What is wrong here may be a password, and messages end in logs.
        raw.url.replace(/\/\/[^/@]*@/, "//***@").replace(/\?.*$/s, "?***"),
        "must have no user, password, query or fragment; use `auth`",
      ),
    );
  if (raw.tls !== undefined && url.protocol !== "https:")
    problems.push(problem("invalid_value", `engines.${id}.tls`, raw.url, "needs an https url"));
  const usual = USUAL_PATHS[raw.kind];
  return {
    id,
    url: raw.url.replace(/\/+$/, ""),
    kind: raw.kind,
    region: raw.region,
    models: raw.models,
    profile: profile === undefined ? null : raw.profile!,
    capacityWps: raw.capacityWps ?? profile?.capacityWps ?? GENERIC_PROFILE.capacityWps,
    replicas: raw.replicas,
    compute: raw.compute ?? null,
    capabilities: raw.capabilities ?? null,
    residency: raw.residency ?? null,
    maxContextTokens: raw.maxContextTokens ?? null,
    maxStreams: raw.maxStreams ?? null,
    adminState: raw.adminState,
    auth: raw.auth ?? {},
    tls: raw.tls ?? {},
    health: {
      path: raw.health.path ?? usual.health,
      pathIsDefault: raw.health.path === undefined,
      port: raw.health.port ?? null,
      intervalMs: raw.health.intervalMs,
    },
    metrics: {
      path: raw.metrics.path ?? (raw.metrics.port === undefined ? usual.metrics : (usual.metrics ?? "/metrics")),
      pathIsDefault: raw.metrics.path === undefined,
      port: raw.metrics.port ?? null,
    },
  };
}

/**
 * Where each kind tells its health and its metrics unless the fleet file says otherwise; null = nowhere. A pool's metrics are
 * its endpoint picker's, at another port than its requests.
 */
const USUAL_PATHS: Readonly<Record<EngineKind, { readonly health: string | null; readonly metrics: string | null }>> = {
  vllm: { health: "/health", metrics: "/metrics" },
  sglang: { health: "/health", metrics: "/metrics" },
  tgi: { health: "/health", metrics: "/metrics" },
  trtllm: { health: "/health", metrics: "/prometheus/metrics" },
  triton: { health: "/v2/health/ready", metrics: "/metrics" },
  llamacpp: { health: "/health", metrics: "/metrics" },
  pool: { health: null, metrics: null },
  openai: { health: null, metrics: null },
};

function buildClasses(
  document: FleetDocument,
  engines: ReadonlyMap<string, EngineSpec>,
  profiles: ReadonlyMap<string, Profile>,
): Map<string, ClassSpec> {
  const classes = new Map<string, ClassSpec>();
  for (const [name, raw] of Object.entries(document.classes)) {
    classes.set(name, buildClass(name, raw, firstProfile(raw.model, engines, profiles)));
  }
  const named = new Set([...classes.values()].map((each) => each.model));
  const models = new Set([...engines.values()].flatMap((engine) => engine.models));
  for (const model of models) {
    if (named.has(model) || classes.has(model)) continue;
    const bare: FleetDocument["classes"][string] = {
      model,
      priority: 0,
      needs: { capabilities: [], residency: [], compute: [], contextTokens: 0 },
    };
    classes.set(model, buildClass(model, bare, firstProfile(model, engines, profiles)));
  }
  return classes;
}

function buildClass(name: string, raw: FleetDocument["classes"][string], profile: Profile | undefined): ClassSpec {
  const { reference } = profile ?? GENERIC_PROFILE;
  const promptTokens = raw.promptTokens ?? reference.promptTokens;
  const outputTokens = raw.outputTokens ?? reference.outputTokens;
  return {
    name,
    model: raw.model,
    priority: raw.priority,
    work: raw.work ?? (profile === undefined ? 1 : workOf(profile, promptTokens, outputTokens)),
    promptTokens,
    outputTokens,
    firstTokenMs: raw.timers?.firstTokenMs ?? null,
    needs: { ...raw.needs, networkMs: raw.needs.networkMs ?? null },
  };
}

/** The profile of the first engine in file order that serves the model and has one. */
function firstProfile(
  model: string,
  engines: ReadonlyMap<string, EngineSpec>,
  profiles: ReadonlyMap<string, Profile>,
): Profile | undefined {
  for (const engine of engines.values()) {
    if (engine.profile !== null && engine.models.includes(model)) return profiles.get(engine.profile);
  }
  return undefined;
}

/** A problem where no engine can serve the class from any cluster. */
function unservable(
  spec: ClassSpec,
  engines: ReadonlyMap<string, EngineSpec>,
  clusters: ReadonlyMap<string, ClusterSpec>,
  network: Network,
): InputProblem[] {
  const [first] = clusters.values();
  if (first === undefined) return [];
  const ruledOutFrom = (cluster: ClusterSpec, engine: EngineSpec) =>
    ineligibleFor(spec, engine, rttBetween(network, cluster, engine.region).rttMs);
  const all = [...engines.values()];
  if ([...clusters.values()].some((cluster) => all.some((engine) => ruledOutFrom(cluster, engine) === null))) return [];
  const reasons = all.map((engine) => `${engine.id}: ${ruledOutFrom(first, engine)?.message}`);
  const why = all.length === 0 ? ": the fleet has none" : ` — ${reasons.join("; ")}`;
  return [problem("class_unservable", `classes.${spec.name}`, spec.model, `no engine can serve this class${why}`)];
}
