import { buildFleet } from "./build-fleet.ts";
import { parseBy, parseYaml, refuse, valueAtPath } from "./document.ts";
import { type InputProblem, problem } from "./errors.ts";
import { FLEET_KEYS, type FleetDocument, fleetSchema, NOT_SUPPORTED_YET } from "./fleet-schema.ts";
import { type Network, parseRttCsv, rttBetween } from "./network.ts";
import { GENERIC_PROFILE, type Profile, parseProfile } from "./profile.ts";
import type { AdminState, Capability, EngineKind } from "./words.ts";

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

/** How an https engine is spoken to. Files are read by the gateway, like `auth.keyFile`. */
export interface EngineTls {
  /** Certificates that the engine's own must be signed by, PEM; left out = the system's. */
  readonly caFile?: string | undefined;
  /** The gateway's own certificate and its key, PEM. */
  readonly certFile?: string | undefined;
  readonly keyFile?: string | undefined;
  /** The name that the engine's certificate must have; left out = the host of its url. */
  readonly serverName?: string | undefined;
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
  /** Most requests at a time from all gateways; null = no hard limit. */
  readonly maxStreams: number | null;
  readonly adminState: AdminState;
  readonly auth: EngineAuth;
  readonly tls: EngineTls;
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

/** How gateways behave. */
export type GatewaySettings = FleetDocument["gateway"] & {
  /** Whether `x-guidevane-class`, `-residency` and `-tenant` of a request are believed. */
  readonly trustHeaders: boolean;
};

/** The fleet file, checked whole and with every default in place. Plain data: it crosses to worker threads. */
export interface Fleet {
  readonly clusters: ReadonlyMap<string, ClusterSpec>;
  readonly engines: ReadonlyMap<string, EngineSpec>;
  /** In file order, then one for each model that no class names. */
  readonly classes: ReadonlyMap<string, ClassSpec>;
  /** Other names that a body may call a model by: alias to model. */
  readonly aliases: ReadonlyMap<string, string>;
  readonly network: Network;
  readonly profiles: ReadonlyMap<string, Profile>;
  /** By cluster, then class. */
  readonly demandRps: ReadonlyMap<string, ReadonlyMap<string, number>>;
  readonly policy: FleetDocument["policy"];
  readonly gateway: GatewaySettings;
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
  const { file, defaultRttMs } = document.network;
  const rttText = file === undefined ? undefined : await readNamed(read, "network.file", file, problems);
  const rttMs: Network["rttMs"] = file === undefined || rttText === undefined ? new Map() : parseRttCsv(rttText, file);
  refuse("bad_fleet", name, problems);
  return buildFleet(document, profiles, { defaultRttMs, rttMs }, name);
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
  return problems;
}

function matches(data: unknown, pattern: readonly string[], at: readonly string[] = []): string[][] {
  const [key, ...rest] = pattern;
  if (key === undefined) return [[...at]];
  if (typeof data !== "object" || data === null) return [];
  const keys = key === "*" ? Object.keys(data) : Object.hasOwn(data, key) ? [key] : [];
  return keys.flatMap((each) => matches((data as Record<string, unknown>)[each], rest, [...at, each]));
}
