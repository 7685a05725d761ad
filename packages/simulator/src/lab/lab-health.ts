import type { Random } from "@guidevane/core";
import { EngineHealth } from "@guidevane/guard";
import type { LabFleet } from "./lab-fleet.ts";
import type { LabClock } from "./lab-timers.ts";

/**
 * What each gateway holds of each engine: the production guard's judgement, fed by refused connections and probes. All
 * policies get it, since all that are in use have something like it.
 */
export class LabHealth {
  /** gateway · engines + engine: 0 = dead to it, else the part of its share that a returning engine may have. */
  readonly factor: Float64Array;
  /** By gateway: rises with each change of its factors. */
  readonly changes: Uint32Array;
  readonly #health: (EngineHealth | undefined)[] = [];
  readonly #fleet: LabFleet;
  readonly #clock: LabClock;
  readonly #random: Random;
  #isAlive: (engine: number) => boolean = () => true;

  constructor(fleet: LabFleet, gateways: number, clock: LabClock, random: Random) {
    this.#fleet = fleet;
    this.#clock = clock;
    this.#random = random;
    this.factor = new Float64Array(gateways * fleet.engines.length).fill(1);
    this.changes = new Uint32Array(gateways);
  }

  /** Once, before the first request. @param isAlive what a probe finds */
  begin(isAlive: (engine: number) => boolean): void {
    this.#isAlive = isAlive;
  }

  /** Whether a gateway holds an engine for dead. */
  isDead(gateway: number, engine: number): boolean {
    return this.factor[gateway * this.#fleet.engines.length + engine] === 0;
  }

  /** A connection was refused. */
  refused(gateway: number, engine: number): void {
    const known = this.isDead(gateway, engine);
    const health = this.#of(gateway, engine);
    health.refused();
    this.#show(gateway, engine, health);
    if (!known && this.isDead(gateway, engine)) this.#probeLater(gateway, engine, health);
  }

  #probeLater(gateway: number, engine: number, health: EngineHealth): void {
    this.#clock.after(health.nextProbeMs(this.#random()), () => {
      health.probed(this.#isAlive(engine) ? { kind: "answer", status: 200 } : { kind: "refused" });
      this.#show(gateway, engine, health);
      if (this.isDead(gateway, engine)) this.#probeLater(gateway, engine, health);
      else this.#ramp(gateway, engine, health);
    });
  }

  #ramp(gateway: number, engine: number, health: EngineHealth): void {
    if (!health.ramping || this.isDead(gateway, engine)) return;
    this.#clock.after(RAMP_STEP_MS, () => {
      this.#show(gateway, engine, health);
      this.#ramp(gateway, engine, health);
    });
  }

  #show(gateway: number, engine: number, health: EngineHealth): void {
    const { out, outByProbe, factor } = health.facts();
    const at = gateway * this.#fleet.engines.length + engine;
    this.factor[at] = out || outByProbe ? 0 : factor;
    this.changes[gateway]! += 1;
  }

  /** Made when first needed: most engines never fail. */
  #of(gateway: number, engine: number): EngineHealth {
    const at = gateway * this.#fleet.engines.length + engine;
    const spec = this.#fleet.engines[engine]!;
    const made =
      this.#health[at] ??
      new EngineHealth(
        {
          replicas: spec.replicas,
          plannedReady: spec.replicas,
          adminState: "active",
          probePath: spec.health.path,
          probePathIsDefault: spec.health.pathIsDefault,
          probeIntervalMs: spec.health.intervalMs,
        },
        this.#clock,
      );
    this.#health[at] = made;
    return made;
  }
}

const RAMP_STEP_MS = 500;
