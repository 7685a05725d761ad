import {
  type ClusterSnapshot,
  type CurveSet,
  encodeRing,
  type Fleet,
  GENERIC_PROFILE,
  loadFleet,
  type Random,
  seededRandom,
} from "@guidevane/core";
import { cellKey, type PlanInputs } from "@guidevane/optimizer";
import { bootstrapSnapshot, buildRing } from "@guidevane/selector";

/** What is timed, and what the tests check the contestants on: one file, so that both see the same. */

/** Curves of `engines` engines with the generic profile's knots, each loaded between nothing and a little over full. */
export function curveInputs(engines: number): { curves: CurveSet; loadWps: Float64Array } {
  const random = seededRandom(engines);
  const knots = GENERIC_PROFILE.ttftMs;
  const base = knots[0]![1];
  const capacityWps = Float64Array.from({ length: engines }, () => 5 + 95 * random());
  return {
    curves: {
      capacityWps,
      knotStart: Uint32Array.from({ length: engines + 1 }, (_, engine) => engine * knots.length),
      knotRho: Float64Array.from({ length: engines * knots.length }, (_, at) => knots[at % knots.length]![0]),
      knotMs: Float64Array.from({ length: engines * knots.length }, (_, at) => knots[at % knots.length]![1] - base),
      headroom: 0.06,
      headroomMs: 6000,
    },
    loadWps: capacityWps.map((capacity) => capacity * 1.05 * random()),
  };
}

/** A fleet of so many clusters, engines and classes, spread over as many regions as clusters, and its demand. */
export async function planInputs(size: { clusters: number; classes: number; engines: number }): Promise<PlanInputs> {
  const random = seededRandom(size.engines * 1000 + size.clusters);
  const clusters = range(size.clusters).map((at) => [`c${at}`, { region: `r${at}` }] as const);
  const engines = range(size.engines).map((at) => {
    const engine = {
      url: `http://10.0.0.${at}:8000`,
      region: `r${at % size.clusters}`,
      models: ["m"],
      capacityWps: 80 + 40 * random(),
    };
    return [`e${at}`, engine] as const;
  });
  const classes = range(size.classes).map((at) => [`k${at}`, { model: "m", priority: at, work: 1 + at }] as const);
  const fleet = await loadFleet(
    JSON.stringify({
      clusters: Object.fromEntries(clusters),
      engines: Object.fromEntries(engines),
      classes: Object.fromEntries(classes),
      network: { file: "rtt.csv" },
    }),
    "bench fleet",
    async () => rttCsv(size.clusters, random),
  );
  // Seven tenths of the fleet's capacity in all, uneven over clusters, so that some overflow to others.
  const capacityWps = [...fleet.engines.values()].reduce((sum, engine) => sum + engine.capacityWps, 0);
  const cells = clusters.flatMap(([cluster]) =>
    [...fleet.classes.values()].map((spec) => ({ cluster, spec, parts: 0.2 + random() })),
  );
  const allParts = cells.reduce((sum, cell) => sum + cell.parts, 0);
  const demandRps = new Map(
    cells.map(({ cluster, spec, parts }) => {
      const work = (0.7 * capacityWps * parts) / allParts;
      return [cellKey(cluster, spec.name), work / spec.work];
    }),
  );
  return { wallMs: 1_700_000_000_000, fleet, demandRps, engines: new Map(), gateways: new Map() };
}

function rttCsv(regions: number, random: Random): string {
  const rows = range(regions).flatMap((from) => range(from).map((to) => `r${from},r${to},${5 + 120 * random()}`));
  return ["from,to,rtt_ms", ...rows].join("\n");
}

function range(count: number): number[] {
  return Array.from({ length: count }, (_, at) => at);
}

/** A fleet of one cluster whose engines all serve one model. */
export function oneCluster(urls: readonly string[]): Promise<Fleet> {
  const engines = urls.map((url, at) => [
    `e${at}`,
    { url, region: "r", models: ["m"], kind: "openai", capacityWps: 50 },
  ]);
  const text = JSON.stringify({ clusters: { c: { region: "r" } }, engines: Object.fromEntries(engines) });
  return loadFleet(text, "bench fleet", () => Promise.reject(new Error("no file is named")));
}

/** Session keys of 36 bytes, as a UUID has. */
export function sessionKeys(count: number): Uint8Array[] {
  const random = seededRandom(count);
  const hex = () => Math.floor(random() * 16).toString(16);
  return range(count).map(() => Buffer.from("xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx".replaceAll("x", hex)));
}

/** Chat bodies without a session whose first user message is `bytes` long: the key is the prompt itself. */
export function chatBodies(count: number, bytes: number): Uint8Array[] {
  const random = seededRandom(bytes);
  const letter = () => String.fromCharCode(97 + Math.floor(random() * 26));
  return range(count).map(() => {
    const content = Array.from({ length: bytes }, letter).join("");
    return Buffer.from(JSON.stringify({ model: "m", messages: [{ role: "user", content }], stream: true }));
  });
}

/** Chat bodies of about `bytes` of prose: a first message of half of it, then turns of some hundred bytes with code. */
export function proseBodies(count: number, bytes: number): Buffer[] {
  const random = seededRandom(bytes + 1);
  const letter = () => String.fromCharCode(97 + Math.floor(random() * 26));
  const word = () => Array.from({ length: 2 + Math.floor(random() * 8) }, letter).join("");
  const prose = (length: number) => {
    let text = word();
    while (text.length < length) text += ` ${word()}`;
    return text.slice(0, length);
  };
  return range(count).map(() => {
    const messages = [{ role: "user", content: prose(bytes >> 1) }];
    for (let left = bytes >> 1; left > 0; left -= 400) {
      const role = messages.length % 2 === 0 ? "user" : "assistant";
      messages.push({ role, content: `${prose(Math.min(left, 330))}\n\`${word()}("${word()}")\`` });
    }
    return Buffer.from(JSON.stringify({ model: "m", messages, temperature: 0.7, max_tokens: 256, stream: true }));
  });
}

/** What a gateway of that fleet routes by once a control plane has published: equal weights, a ring of 4,096 slots. */
export async function ringSnapshot(engines: number): Promise<ClusterSnapshot> {
  const urls = range(engines).map((at) => `http://10.0.${at >> 8}.${at & 255}:8000`);
  const snapshot = bootstrapSnapshot(await oneCluster(urls), "c", 1_700_000_000_000);
  const cells = snapshot.cells.map((cell) => {
    const { owners } = buildRing(cell.engines, cell.weights, 4096);
    return { ...cell, ring: encodeRing(owners, cell.engines.length) };
  });
  return { ...snapshot, version: 1, epoch: 1, cells };
}
