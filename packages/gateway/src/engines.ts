import type { ClusterSnapshot, SnapshotEngine } from "@guidevane/core";
import { Bag, type InBag } from "./bag.ts";
import { type EngineCredentials, type EngineTlsSecrets, NO_CREDENTIALS } from "./credentials.ts";
import type { EngineClient } from "./engine-client.ts";

/** What a request thread holds of one engine while any snapshot of it is in use. */
export interface Engine {
  readonly id: string;
  readonly spec: SnapshotEngine;
  readonly url: URL;
  /** Put before a request's path; empty for most. */
  readonly pathPrefix: string;
  readonly client: EngineClient;
  readonly credentials: EngineCredentials;
}

export interface EnginesOptions {
  /** By engine; others get none. */
  readonly credentials: ReadonlyMap<string, EngineCredentials>;
  readonly createClient: (origin: string, tls: EngineTlsSecrets | null) => EngineClient;
}

/** An attempt at an engine, for as long as it runs. */
export interface AttemptUnderWay extends InBag {
  /** The engine's port is closed: silence now means that it is dead. */
  engineDied(): void;
  /** Of the answer's body, up to now. */
  bytes(): number;
}

interface Known extends Engine {
  /** The newest snapshot when its definition was last read. */
  asOf: ClusterSnapshot;
  spec: SnapshotEngine;
  url: URL;
  pathPrefix: string;
  client: EngineClient;
  credentials: EngineCredentials;
  readonly running: Bag<AttemptUnderWay>;
  /** Of the answers under way when it was last looked. */
  bytes: number;
}

/** The engines that one request thread talks to: their connections and the attempts under way. */
export class Engines {
  readonly #options: EnginesOptions;
  readonly #byId = new Map<string, Known>();
  /** In use, the newest one first. */
  #snapshots: readonly ClusterSnapshot[] = [];
  #credentials: EnginesOptions["credentials"];

  constructor(options: EnginesOptions) {
    this.#options = options;
    this.#credentials = options.credentials;
  }

  /**
   * Also one that the newest snapshot has no more, while a request by an older one may use it. What the newest says of it
   * is taken over here, engine by engine: of a thousand most are not asked for at once.
   */
  get(id: string): Engine | undefined {
    const known = this.#byId.get(id);
    const [newest] = this.#snapshots;
    if (newest === undefined || known?.asOf === newest) return known;
    const spec = this.#snapshots.find(({ engines }) => Object.hasOwn(engines, id))?.engines[id];
    if (spec === undefined) return known;
    if (known !== undefined) return this.#update(known, spec, newest);
    const created = this.#create(id, spec, newest);
    this.#byId.set(id, created);
    return created;
  }

  /** Engines are as this one says from now on. Connections to those that stay where they are stay. */
  adopt(snapshot: ClusterSnapshot): void {
    this.#snapshots = [snapshot, ...this.#snapshots];
  }

  /** Lets go of engines that no snapshot in use has: requests that began by an older one may still go to them. */
  sweep(inUse: readonly ClusterSnapshot[]): void {
    this.#snapshots = this.#snapshots.filter((snapshot) => inUse.includes(snapshot));
    for (const [id, known] of this.#byId) {
      if (this.#snapshots.some(({ engines }) => Object.hasOwn(engines, id))) continue;
      known.client.close();
      this.#byId.delete(id);
    }
  }

  /** From the next request on. */
  setCredentials(credentials: ReadonlyMap<string, EngineCredentials>): void {
    this.#credentials = credentials;
    for (const known of this.#byId.values()) {
      const before = known.credentials;
      known.credentials = this.#credentialsOf(known.id);
      if (JSON.stringify(before.tls) !== JSON.stringify(known.credentials.tls)) this.#connectAnew(known);
    }
  }

  began(id: string, running: AttemptUnderWay): void {
    this.#byId.get(id)?.running.add(running);
  }

  ended(id: string, running: AttemptUnderWay): void {
    this.#byId.get(id)?.running.delete(running);
  }

  /** Its port refuses: what waits for it need not wait on. */
  died(id: string): void {
    // One that gives up at once is taken out meanwhile.
    for (const running of [...(this.#byId.get(id)?.running ?? [])]) running.engineDied();
  }

  /** Engines whose answers under way have come further since the last call. */
  progressed(): string[] {
    const ids: string[] = [];
    for (const known of this.#byId.values()) {
      let bytes = 0;
      for (const running of known.running) bytes += running.bytes();
      // One that ended takes its bytes along; the others' progress then shows at the next look.
      if (bytes > known.bytes) ids.push(known.id);
      known.bytes = bytes;
    }
    return ids;
  }

  /** Attempts under way. */
  inFlight(id: string): number {
    return this.#byId.get(id)?.running.size ?? 0;
  }

  close(): void {
    for (const known of this.#byId.values()) known.client.close();
  }

  #credentialsOf(id: string): EngineCredentials {
    return this.#credentials.get(id) ?? NO_CREDENTIALS;
  }

  #create(id: string, spec: SnapshotEngine, asOf: ClusterSnapshot): Known {
    const credentials = this.#credentialsOf(id);
    const place = placeOf(spec);
    const client = this.#options.createClient(place.url.origin, credentials.tls);
    return { id, spec, asOf, ...place, client, credentials, running: new Bag(), bytes: 0 };
  }

  #update(known: Known, spec: SnapshotEngine, asOf: ClusterSnapshot): Known {
    const before = known.spec.url;
    known.spec = spec;
    known.asOf = asOf;
    if (spec.url === before) return known;
    const origin = known.url.origin;
    Object.assign(known, placeOf(spec));
    if (known.url.origin !== origin) this.#connectAnew(known);
    return known;
  }

  /** Running answers end on the connections that they have. */
  #connectAnew(known: Known): void {
    known.client.close();
    known.client = this.#options.createClient(known.url.origin, known.credentials.tls);
  }
}

function placeOf(spec: SnapshotEngine): { url: URL; pathPrefix: string } {
  const url = new URL(spec.url);
  // People write an engine's address with and without the `/v1` that every request path brings.
  const pathPrefix = url.pathname.replace(/\/+$/, "").replace(/\/v1$/, "");
  return { url, pathPrefix };
}
