import type { ClusterSnapshot, SnapshotEngine } from "@guidevane/core";
import type { RunningAttempt } from "./attempt.ts";
import { Bag } from "./bag.ts";
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

interface Known extends Engine {
  spec: SnapshotEngine;
  url: URL;
  pathPrefix: string;
  client: EngineClient;
  credentials: EngineCredentials;
  readonly running: Bag<RunningAttempt>;
  /** Of the answers under way when it was last looked. */
  bytes: number;
}

/** The engines that one request thread talks to: their connections and the attempts under way. */
export class Engines {
  readonly #options: EnginesOptions;
  readonly #byId = new Map<string, Known>();
  #credentials: EnginesOptions["credentials"];

  constructor(options: EnginesOptions) {
    this.#options = options;
    this.#credentials = options.credentials;
  }

  /** Also one that the newest snapshot has no more, while a request by an older one may use it. */
  get(id: string): Engine | undefined {
    return this.#byId.get(id);
  }

  /** Takes over a snapshot's engines. Connections to those that stay where they are stay. */
  adopt(snapshot: ClusterSnapshot): void {
    for (const [id, spec] of Object.entries(snapshot.engines)) {
      const known = this.#byId.get(id);
      if (known === undefined) this.#byId.set(id, this.#create(id, spec));
      else this.#update(known, spec);
    }
  }

  /** Lets go of engines that no snapshot in use has: requests that began by an older one may still go to them. */
  sweep(inUse: Iterable<ClusterSnapshot>): void {
    const ids = new Set([...inUse].flatMap((snapshot) => Object.keys(snapshot.engines)));
    for (const [id, known] of this.#byId) {
      if (ids.has(id)) continue;
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

  began(id: string, running: RunningAttempt): void {
    this.#byId.get(id)?.running.add(running);
  }

  ended(id: string, running: RunningAttempt): void {
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

  #create(id: string, spec: SnapshotEngine): Known {
    const credentials = this.#credentialsOf(id);
    const client = this.#options.createClient(new URL(spec.url).origin, credentials.tls);
    return { id, spec, ...placeOf(spec), client, credentials, running: new Bag(), bytes: 0 };
  }

  #update(known: Known, spec: SnapshotEngine): void {
    const moved = new URL(spec.url).origin !== known.url.origin;
    known.spec = spec;
    Object.assign(known, placeOf(spec));
    if (moved) this.#connectAnew(known);
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
