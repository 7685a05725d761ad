import type { ClusterSnapshot, DemandReport, Outcome, StoredPublication } from "@guidevane/core";
import { cellKey, type PlanWarm, plan } from "@guidevane/optimizer";
import { GatewayGuards } from "../guidevane/gateway-guards.ts";
import { GatewayRouter } from "../guidevane/gateway-router.ts";
import type { GuidevaneParts } from "../guidevane/parts.ts";
import { NOBODY, type Policy, type PolicyDefinition, type PolicyWorld, SHED } from "../policy.ts";

/** Guidevane itself: the production plan, rings, router and guard rails; nothing here decides anything. */
export const guidevane: PolicyDefinition = guidevaneWith("guidevane", {});

/** Guidevane without some of its parts, to see what each is worth. */
export function guidevaneWith(name: string, parts: Partial<GuidevaneParts>): PolicyDefinition {
  return {
    name,
    does: "routes by the production optimizer's rings, with its selector and guard",
    grid: {},
    create: (world) => new Guidevane(world, { ...partsOf(world), ...parts }),
  };
}

function partsOf({ fleet }: PolicyWorld): GuidevaneParts {
  const { placement } = fleet.fleet.gateway;
  return { placement, bound: true, memory: true, penalties: true, admission: true, budget: true, choose: null };
}

class Guidevane implements Policy {
  readonly #world: PolicyWorld;
  readonly #gateways: Gateway[];
  #stored: StoredPublication | null = null;
  #warm: PlanWarm | null = null;

  constructor(world: PolicyWorld, parts: GuidevaneParts) {
    this.#world = world;
    this.#gateways = Array.from(world.gatewayCluster, (_, gateway) => new Gateway(world, gateway, parts));
  }

  route(gateway: number, request: number, tried: readonly number[], isFree: boolean): number {
    return this.#gateways[gateway]!.route(request, tried, isFree);
  }

  sent(gateway: number, request: number, engine: number): void {
    this.#gateways[gateway]!.sent(request, engine);
  }

  firstToken(gateway: number, request: number, ttftMs: number): void {
    this.#gateways[gateway]!.guards.firstToken(request, ttftMs);
  }

  ended(gateway: number, request: number, engine: number, outcome: Outcome, tbotMs: number | null): void {
    this.#gateways[gateway]!.ended(request, engine, outcome, tbotMs);
  }

  over(gateway: number, request: number): void {
    this.#gateways[gateway]!.guards.leave(request);
  }

  report(gateway: number): DemandReport["engines"] {
    return this.#gateways[gateway]!.guards.report();
  }

  tick(): void {
    const world = this.#world;
    const { clusters, classes, engines, fleet } = world.fleet;
    const demandRps = new Map<string, number>();
    const demandDeviationRps = new Map<string, number>();
    for (const [k, spec] of classes.entries()) {
      for (const [c, cluster] of clusters.entries()) {
        const cell = k * clusters.length + c;
        demandRps.set(cellKey(cluster.name, spec.name), world.demandRps(cell));
        demandDeviationRps.set(cellKey(cluster.name, spec.name), world.demandDeviationRps(cell));
      }
    }
    const inputs = {
      wallMs: world.clock.wallMs(),
      fleet,
      demandRps,
      demandDeviationRps,
      engines: new Map(
        engines.map(({ id, adminState }, e) => [
          id,
          { readyReplicas: world.readyReplicas(e), severity: world.severity(e), adminState },
        ]),
      ),
      gateways: new Map(clusters.map(({ name }, c) => [name, world.liveGateways(c)])),
    };
    const planned = plan(inputs, this.#stored, this.#warm, { deadlineMs: null });
    this.#warm = planned.warm;
    const version = (this.#stored?.version ?? 0) + 1;
    if (planned.publication !== null) {
      const stamped = new Map(
        [...planned.publication.clusters].map(([name, snapshot]) => [name, { ...snapshot, version, epoch: 1 }]),
      );
      this.#stored = { ...planned.publication, clusters: stamped, version, epoch: 1 };
      this.#tellChurn(stamped);
    }
    const snapshots = planned.publication === null ? null : this.#stored!.clusters;
    world.deliver(() => {
      for (const gateway of this.#gateways) gateway.hear(snapshots);
    });
  }

  #tellChurn(snapshots: ReadonlyMap<string, ClusterSnapshot>): void {
    const { clusters, classes, engines } = this.#world.fleet;
    const place = new Map(engines.map(({ id }, e) => [id, e]));
    for (const [c, { name }] of clusters.entries()) {
      for (const cell of snapshots.get(name)?.cells ?? []) {
        const weights = new Float64Array(engines.length);
        for (const [index, id] of cell.engines.entries()) weights[place.get(id)!] = cell.weights[index]!;
        const k = classes.findIndex((spec) => spec.name === cell.class);
        this.#world.published(k * clusters.length + c, weights);
      }
    }
  }
}

/** One gateway: its selector behind its guard rails, in the order of the gateway's request path. */
class Gateway {
  readonly guards: GatewayGuards;
  readonly #world: PolicyWorld;
  readonly #router: GatewayRouter;
  readonly #cluster: string;
  readonly #gateway: number;
  #healthChanges = 0;
  #heardMs = 0;

  constructor(world: PolicyWorld, gateway: number, parts: GuidevaneParts) {
    this.#world = world;
    this.#gateway = gateway;
    this.#cluster = world.fleet.clusters[world.gatewayCluster[gateway]!]!.name;
    this.#router = new GatewayRouter(world, gateway, parts);
    this.guards = new GatewayGuards(world, gateway, parts, this.#router.snapshot);
  }

  /** The control plane's word has come. @param snapshots null = nothing new was published */
  hear(snapshots: ReadonlyMap<string, ClusterSnapshot> | null): void {
    this.#heardMs = this.#world.clock.nowMs();
    const snapshot = snapshots?.get(this.#cluster);
    if (snapshot === undefined) return;
    this.#router.use(snapshot);
    this.guards.use(snapshot);
  }

  route(request: number, tried: readonly number[], isFree: boolean): number {
    const { guards } = this;
    const router = this.#router;
    const isRetry = tried.length > 0;
    if (isRetry && !isFree && !guards.takeRetry(request)) return NOBODY;
    if (this.#healthChanges !== this.#world.healthChanges[this.#gateway]) {
      this.#healthChanges = this.#world.healthChanges[this.#gateway]!;
      guards.healthChanged();
    }
    if (guards.takeNew()) router.writeStates(guards.factor, (engine) => guards.isCooling(engine));
    const engine = router.route(request, tried);
    if (engine < 0) {
      if (isRetry && !isFree) guards.giveBack(request);
      return NOBODY;
    }
    if (isRetry) return engine;
    const facts = {
      shed: router.snapshot.cells[router.cell]!.shed,
      first: router.isFirst,
      keyHash2: router.keyHash2,
      sinceControlMs: this.#world.clock.nowMs() - this.#heardMs,
    };
    return guards.enter(request, facts) ? engine : SHED;
  }

  sent(request: number, engine: number): void {
    this.#router.countStream(request, engine, 1);
    this.guards.began(request, engine);
  }

  ended(request: number, engine: number, outcome: Outcome, tbotMs: number | null): void {
    this.#router.countStream(request, engine, -1);
    this.guards.ended(request, engine, outcome, tbotMs);
  }
}
