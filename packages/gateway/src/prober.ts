import type { Clock, Random } from "@guidevane/core";
import type { EngineTlsSecrets } from "./credentials.ts";
import type { EngineState, EngineStates } from "./engine-states.ts";
import type { Probe } from "./probe.ts";

/** A probe that has no answer by then counts as failed. */
const PROBE_TIMEOUT_MS = 2000;

/** Asks the engines that traffic has not just shown healthy how they are, each in its own rhythm. */
export class Prober {
  readonly #states: EngineStates;
  readonly #probe: Probe;
  readonly #tlsOf: (engine: string) => EngineTlsSecrets | null;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #stops = new Map<string, () => void>();
  #stopped = false;

  constructor(
    states: EngineStates,
    probe: Probe,
    tlsOf: (engine: string) => EngineTlsSecrets | null,
    clock: Clock,
    random: Random,
  ) {
    this.#tlsOf = tlsOf;
    this.#states = states;
    this.#probe = probe;
    this.#clock = clock;
    this.#random = random;
  }

  /** Starts asking an engine that is new; one that is gone is let go at its next turn. */
  watch(id: string): void {
    const engine = this.#states.get(id);
    if (engine === undefined || this.#stops.has(id) || this.#stopped) return;
    // The first time soon, but not all engines in the same instant.
    this.#wait(id, engine.health.nextProbeMs(0) * 0.1 * this.#random());
  }

  /** Asks at once: something has just spoken against the engine. */
  hurry(id: string): void {
    if (!this.#stopped && this.#stops.has(id)) this.#wait(id, 0);
  }

  stop(): void {
    this.#stopped = true;
    for (const stop of this.#stops.values()) stop();
    this.#stops.clear();
  }

  #wait(id: string, ms: number): void {
    this.#stops.get(id)?.();
    this.#stops.set(
      id,
      this.#clock.after(ms, () => void this.#turn(id)),
    );
  }

  async #turn(id: string): Promise<void> {
    const engine = this.#states.get(id);
    if (engine === undefined) {
      this.#stops.delete(id);
      return;
    }
    const probe = engine.health.probe;
    if (probe !== null && !engine.health.freshlySeen) {
      const result = await this.#probe(probeUrl(engine), probe.path, PROBE_TIMEOUT_MS, this.#clock, this.#tlsOf(id));
      if (this.#stopped) return;
      if (result !== null) engine.health.probed(result);
      this.#states.reread(id);
    }
    this.#wait(id, engine.health.nextProbeMs(this.#random()));
  }
}

function probeUrl({ spec }: EngineState): URL {
  const url = new URL(spec.url);
  if (spec.health.port === null) return url;
  url.port = String(spec.health.port);
  return url;
}
