import { parseBy, parseYaml, refuse, valueAtPath } from "./document.ts";
import { ineligibleFor } from "./eligible.ts";
import { type InputProblem, problem } from "./errors.ts";
import { FLEET_KEYS, type FleetDocument, fleetSchema, NOT_SUPPORTED_YET } from "./fleet-schema.ts";
import { DEFAULT_RTT_MS, type Network, parseRttCsv, rttBetween } from "./network.ts";
import { GENERIC_PROFILE, type Profile, parseProfile, workOf } from "./profile.ts";
import { type AdminState, type Capability, type EngineKind, LATER_ENGINE_KINDS } from "./words.ts";

/** A front-end cluster: where requests arrive and gateways run. */
export interface ClusterSpec {
  readonly name: string;
  readonly region: string;
}

export interface EngineAuth {
  readonly keyEnv?: string | undefined;
  readonly keyFile?: string | undefined;
  readonly passthrough?: boolean | undefined;
}

/** Where to ask an engine something; `path: null` = do not ask. `port: null` = the engine's own. */
export interface ProbeSpec {
  readonly path: string | null;
  /** Whether the path is the kind's own: then 401, 404 and 405 mean "no such probe", not "dead". */
  readonly pathIsDefault: boolean;
  readonly port: number | null;
}

/** One serving endpoint of one or more models. */
export interface EngineSpec {
  readonly id: string;
  readonly url: string;
  readonly kind: EngineKind;
  readonly region: string;
  readonly models: readonly string[];
  /** Name of its profile in `Fleet.profiles`; null = the generic curve. */
  readonly profile: string | null;
  /** Work units/s of one replica. */
  readonly capacityWps: number;
  readonly replicas: number;
  readonly compute: string | null;
  /** null = not known, taken as able. */
  readonly capabilities: readonly Capability[] | null;
  /** null = serves classes without a residency need only. */
  readonly residency: string | null;
  readonly maxContextTokens: number | null;
  readonly adminState: AdminState;
  readonly auth: EngineAuth;
  readonly health: ProbeSpec & { readonly intervalMs: number };
  readonly metrics: ProbeSpec;
}

export interface ClassNeeds {
  readonly capabilities: readonly Capability[];
  readonly residency: readonly string[];
  readonly compute: readonly string[];
  readonly contextTokens: number;
  /** Engines with a larger round trip are ineligible; null = any distance. */
  readonly networkMs: number | null;
}

/** A request class: a model plus what it needs, and a priority. */
export interface ClassSpec {
  readonly name: string;
  readonly model: string;
  /** Higher = shed later. */
  readonly priority: number;
  /** Units of work of one request. */
  readonly work: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** null = the gateway's own. */
  readonly firstTokenMs: number | null;
  readonly needs: ClassNeeds;
}

/** The fleet file, checked whole and with every default in place. Plain data: it crosses to worker threads. */
export interface Fleet {
  readonly clusters: ReadonlyMap<string, ClusterSpec>;
  readonly engines: ReadonlyMap<string, EngineSpec>;
  /** In file order, then one for each model that no class names. */
  readonly classes: ReadonlyMap<string, ClassSpec>;
  readonly network: Network;
  readonly profiles: ReadonlyMap<string, Profile>;
  /** By cluster, then class. */
  readonly demandRps: ReadonlyMap<string, ReadonlyMap<string, number>>;
  readonly policy: FleetDocument["policy"];
  readonly gateway: FleetDocument["gateway"];
  /** What is allowed but worth saying: generic curves, guessed round trips. */
  readonly warnings: readonly string[];
}

/** Reads a file named in the fleet file; its path is as written there, and the reader resolves it. */
export type ReadText = (path: string) => Promise<string>;

/** Profile of an engine, the generic one where it has none. */
export function profileOf(fleet: Pick<Fleet, "profiles">, engine: Pick<EngineSpec, "profile">): Profile {
  return (engine.profile === null ? undefined : fleet.profiles.get(engine.profile)) ?? GENERIC_PROFILE;
}

/** Round trip between a cluster and an engine, ms. */
export function rttMsOf(
  fleet: Pick<Fleet, "network">,
  cluster: ClusterSpec,
  engine: Pick<EngineSpec, "region">,
): number {
  return rttBetween(fleet.network, cluster, engine.region).rttMs;
}

/**
 * The fleet file (YAML, `docs/fleet-file.md`) and the files it names, to a fleet.
 *
 * @param read resolves paths against the fleet file's own folder
 * @throws GuidevaneError `bad_fleet`, `bad_profile` or `bad_network`, naming each path and value
 */
export async function loadFleet(text: string, name: string, read: ReadText): Promise<Fleet> {
  const data = parseYaml(text, name, "bad_fleet");
  refuse("bad_fleet", name, notSupported(data));
  const document = parseBy(fleetSchema, data, name, "bad_fleet", FLEET_KEYS);

  const problems: InputProblem[] = [];
  const profiles = new Map<string, Profile>();
  for (const [id, { file }] of Object.entries(document.profiles)) {
    const profileText = await readNamed(read, `profiles.${id}.file`, file, problems);
    if (profileText !== undefined) profiles.set(id, parseProfile(profileText, file));
  }
  const file = document.network.file;
  const rttText = file === undefined ? undefined : await readNamed(read, "network.file", file, problems);
  const network: Network = {
    defaultRttMs: document.network.defaultRttMs ?? DEFAULT_RTT_MS,
    rttMs: rttText === undefined || file === undefined ? new Map() : parseRttCsv(rttText, file),
  };
  refuse("bad_fleet", name, problems);
  return buildFleet(document, profiles, network, name);
}

function buildFleet(document: FleetDocument, profiles: Map<string, Profile>, network: Network, name: string): Fleet {
  const problems: InputProblem[] = [];
  const warnings: string[] = [];
  const clusters = new Map(
    Object.entries(document.clusters).map(([id, { region }]) => [id, { name: id, region }] as const),
  );
  const engines = new Map<string, EngineSpec>();
  for (const [id, raw] of Object.entries(document.engines)) {
    const engine = buildEngine(id, raw, profiles, problems);
    engines.set(id, engine);
    if (engine.profile === null) warnings.push(`engines.${id} has no profile: the generic curve is used`);
  }
  const classes = buildClasses(document, engines, profiles);

  for (const [cluster, byClass] of Object.entries(document.demandRps)) {
    if (!clusters.has(cluster))
      problems.push(problem("unknown_name", `demandRps.${cluster}`, cluster, "is not a cluster"));
    for (const requestClass of Object.keys(byClass)) {
      if (!classes.has(requestClass))
        problems.push(problem("unknown_name", `demandRps.${cluster}.${requestClass}`, requestClass, "is not a class"));
    }
  }
  const named = Object.keys(document.classes);
  for (const spec of classes.values()) {
    const [firstCluster] = clusters.values();
    if (firstCluster === undefined || !named.includes(spec.name)) continue;
    const servable = [...clusters.values()].some((cluster) =>
      [...engines.values()].some(
        (engine) => ineligibleFor(spec, engine, rttBetween(network, cluster, engine.region).rttMs) === null,
      ),
    );
    if (!servable)
      problems.push(
        problem("class_unservable", `classes.${spec.name}`, spec.model, unservable(spec, engines, clusters, network)),
      );
  }
  for (const cluster of clusters.values()) {
    for (const engine of engines.values()) {
      if (!rttBetween(network, cluster, engine.region).known)
        warnings.push(
          `no round trip from cluster ${cluster.name} (${cluster.region}) to ${engine.region}: ${network.defaultRttMs} ms assumed for engine ${engine.id}`,
        );
    }
  }
  refuse("bad_fleet", name, problems);
  return {
    clusters,
    engines,
    classes,
    network,
    profiles,
    demandRps: new Map(
      Object.entries(document.demandRps).map(([cluster, byClass]) => [cluster, new Map(Object.entries(byClass))]),
    ),
    policy: document.policy,
    gateway: document.gateway,
    warnings,
  };
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
  const hasMetrics = raw.kind !== "openai";
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
    adminState: raw.adminState,
    auth: raw.auth ?? {},
    health: {
      path: raw.health?.path ?? (raw.kind === "openai" ? null : "/health"),
      pathIsDefault: raw.health?.path === undefined,
      port: raw.health?.port ?? null,
      intervalMs: raw.health?.intervalMs ?? 2000,
    },
    metrics: {
      path: raw.metrics?.path ?? (hasMetrics ? "/metrics" : null),
      pathIsDefault: raw.metrics?.path === undefined,
      port: raw.metrics?.port ?? null,
    },
  };
}

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

function unservable(
  spec: ClassSpec,
  engines: ReadonlyMap<string, EngineSpec>,
  clusters: ReadonlyMap<string, ClusterSpec>,
  network: Network,
): string {
  if (engines.size === 0) return "no engine can serve this class: the fleet has none";
  const [cluster] = clusters.values();
  const reasons = [...engines.values()].map((engine) => {
    const rttMs = cluster === undefined ? 0 : rttBetween(network, cluster, engine.region).rttMs;
    return `${engine.id}: ${ineligibleFor(spec, engine, rttMs)?.message ?? "eligible elsewhere"}`;
  });
  return `no engine can serve this class — ${reasons.join("; ")}`;
}

async function readNamed(
  read: ReadText,
  path: string,
  file: string,
  problems: InputProblem[],
): Promise<string | undefined> {
  try {
    return await read(file);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    problems.push(problem("unreadable_file", path, file, `can't be read: ${why}`));
    return undefined;
  }
}

function notSupported(data: unknown): InputProblem[] {
  const problems: InputProblem[] = [];
  for (const pattern of NOT_SUPPORTED_YET) {
    for (const path of matches(data, pattern.split("."))) {
      problems.push(problem("not_supported_yet", path.join("."), valueAtPath(data, path), "is not supported yet"));
    }
  }
  const later: readonly string[] = LATER_ENGINE_KINDS;
  for (const path of matches(data, ["engines", "*", "kind"])) {
    const kind = valueAtPath(data, path);
    if (typeof kind === "string" && later.includes(kind))
      problems.push(
        problem(
          "not_supported_yet",
          path.join("."),
          kind,
          "this kind is not supported yet; `openai` works for any engine, without metrics",
        ),
      );
  }
  return problems;
}

function matches(data: unknown, pattern: readonly string[], at: readonly string[] = []): string[][] {
  const [key, ...rest] = pattern;
  if (key === undefined) return [[...at]];
  if (typeof data !== "object" || data === null) return [];
  const keys = key === "*" ? Object.keys(data) : Object.hasOwn(data, key) ? [key] : [];
  return keys.flatMap((each) => matches((data as Record<string, unknown>)[each], rest, [...at, each]));
}
