import { writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { parseProfile } from "@guidevane/core";
import type { Program } from "../program.ts";
import { eventually, Gateway, MODEL, Whole } from "../whole.ts";

export interface StressFleetOptions {
  /** Region of each engine, by id; a cluster of the same name is in each region. */
  readonly engines: Readonly<Record<string, string>>;
  /** Work units/s that each engine holds; a request of 64 prompt and 16 output tokens is one. */
  readonly capacityWps: number;
  readonly tickMs: number;
  readonly threads: number;
  /** Times of a request ÷ those of engines made for tests: 20 ms to the first token, 2 ms a token. Default 1. */
  readonly slowness?: number;
  /** Where every thread of every program writes once a minute what it holds; see memory-probe.ts. */
  readonly heapFile?: string;
  /** Engines that run in this process: cheaper to start, and never killed. */
  readonly inThisProcess?: readonly string[] | undefined;
}

/** A fleet of real processes whose parts can be killed and come back at the same address. */
export class StressFleet {
  readonly whole: Whole;
  readonly #options: StressFleetOptions;
  readonly #ports = new Map<string, number>();
  readonly #programs = new Map<string, Program>();
  readonly gateways = new Map<string, Gateway>();

  constructor(options: StressFleetOptions) {
    this.#options = options;
    this.whole = new Whole(options.heapFile === undefined ? {} : heapEnv(options.heapFile));
  }

  get #profile(): string {
    return profileText(this.#options.capacityWps, this.#options.slowness ?? 1);
  }

  get clusters(): readonly string[] {
    return [...new Set(Object.values(this.#options.engines))];
  }

  get controlUrl(): string {
    return this.urlOf("control");
  }

  /** Starts engines, the control plane and a gateway a cluster, and waits until all route by a snapshot. */
  async start(): Promise<void> {
    const { engines, tickMs } = this.#options;
    const names = [
      ...Object.keys(engines),
      "control",
      ...this.clusters.flatMap((each) => [`${each}`, `${each}-admin`]),
    ];
    const ports = await freePorts(names.length);
    for (const [index, name] of names.entries()) this.#ports.set(name, ports[index]!);
    writeFileSync(join(this.whole.folder, "stress.yaml"), this.#profile);
    this.whole.writeFleet(
      Object.fromEntries(
        Object.entries(engines).map(([id, region]) => [
          id,
          { url: this.urlOf(id), region, profile: "stress", health: { intervalMs: 1000 } },
        ]),
      ),
      {
        clusters: Object.fromEntries(this.clusters.map((name) => [name, { region: name }])),
        profiles: { stress: { file: "stress.yaml" } },
        network: { defaultRttMs: 20 },
        policy: { tickMs },
      },
    );
    await Promise.all(Object.keys(engines).map((id) => this.startEngine(id)));
    await this.startControl();
    await Promise.all(this.clusters.map((cluster) => this.startGateway(cluster)));
    await Promise.all([...this.gateways.values()].map((gateway) => gateway.hasSnapshot()));
  }

  async startEngine(id: string): Promise<void> {
    const port = this.#ports.get(id)!;
    if (this.#options.inThisProcess?.includes(id)) {
      await this.whole.engine({ port, profile: parseProfile(this.#profile, "stress profile") });
      return;
    }
    const profile = join(this.whole.folder, "stress.yaml");
    const program = this.whole.program("emulate", "--port", String(port), "--model", MODEL, "--profile", profile);
    this.#programs.set(id, program);
    await program.logged(({ url }) => url);
  }

  async startControl(): Promise<void> {
    const store = join(this.whole.folder, "store");
    const admin = `127.0.0.1:${this.#ports.get("control")}`;
    const program = this.whole.program("control", "--fleet", this.whole.fleetFile, "--admin", admin, "--store", store);
    this.#programs.set("control", program);
    await program.logged(({ adminUrl }) => adminUrl);
  }

  async startGateway(cluster: string): Promise<void> {
    const program = this.whole.program(
      ...["gateway", "--cluster", cluster, "--fleet", this.whole.fleetFile, "--control", this.controlUrl],
      ...[
        "--listen",
        `127.0.0.1:${this.#ports.get(cluster)}`,
        "--admin",
        `127.0.0.1:${this.#ports.get(`${cluster}-admin`)}`,
      ],
      ...["--state", join(this.whole.folder, `state-${cluster}`), "--threads", String(this.#options.threads)],
    );
    this.#programs.set(cluster, program);
    const found = await program.logged((line) => (line.url === undefined ? undefined : line));
    this.gateways.set(cluster, new Gateway(program, String(found.url), String(found.adminUrl)));
  }

  /** Base URL of an engine or of a cluster's gateway. */
  urlOf(name: string): string {
    return `http://127.0.0.1:${this.#ports.get(name)}`;
  }

  /** The process of an engine, of a cluster's gateway, or `control`. */
  program(name: string): Program {
    return this.#programs.get(name)!;
  }

  /** Every process that runs, by name. */
  living(): [string, Program][] {
    return [...this.#programs].filter(([, { child }]) => child.exitCode === null && child.signalCode === null);
  }

  /** Base URLs for the clients of a cluster: its own gateway, then the others. */
  urlsFor(cluster: string): string[] {
    return [cluster, ...this.clusters.filter((each) => each !== cluster)].map((each) => this.urlOf(each));
  }

  /** Sum of the samples of a gateway's metric whose labels have `labels` among them. */
  async metric(cluster: string, name: string, labels = ""): Promise<number> {
    const text = await (await fetch(`${this.gateways.get(cluster)!.adminUrl}/metrics`)).text();
    let sum = 0;
    for (const line of text.split("\n"))
      if (line.startsWith(`${name}{`) && line.includes(labels)) sum += Number(line.slice(line.lastIndexOf(" ") + 1));
    return sum;
  }

  /** Resolves when no gateway counts a request as under way. @throws Error when one still does after 10 s */
  async noSlotLeft(): Promise<void> {
    for (const cluster of this.clusters)
      await eventually(async () => (await this.metric(cluster, "guidevane_in_flight")) === 0, 10_000, 200);
  }

  stop(): Promise<void> {
    return this.whole.stop();
  }
}

function profileText(capacityWps: number, slowness: number): string {
  const curve = (...points: readonly (readonly [number, number])[]): string =>
    JSON.stringify(points.map(([utilisation, ms]) => [utilisation, ms * slowness]));
  return `
profile: stress
reference: { promptTokens: 64, outputTokens: 16 }
work: { prefillPerKtok: 3.125, decodePerKtok: 50 }
prefillMsPerTok: 0.1
loop: open
capacityWps: ${capacityWps}
ttftMs: ${curve([0, 20], [0.7, 24], [0.95, 60], [1, 120])}
tbotMs: ${curve([0, 2], [0.7, 2.2], [0.95, 5], [1, 9])}
`;
}

/** What has every thread of a program run memory-probe.ts. */
function heapEnv(heapFile: string): Record<string, string> {
  const probe = new URL("./memory-probe.ts", import.meta.url).href;
  return { NODE_OPTIONS: `--expose-gc --import=${probe}`, GUIDEVANE_STRESS_MEMORY: heapFile };
}

/** So many ports that nothing listens on now. */
async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  const ports = await Promise.all(
    servers.map(
      (server) =>
        new Promise<number>((resolve) => {
          server.listen(0, "127.0.0.1", () => resolve((server.address() as { port: number }).port));
        }),
    ),
  );
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
