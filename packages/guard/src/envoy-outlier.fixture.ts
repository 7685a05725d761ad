/**
 * Envoy's outlier detection with its defaults, for comparison (envoyproxy/envoy, docs "Outlier detection" and
 * `outlier_detection.proto`): ejected after 5 consecutive 5xx at once; each 10 s, where at least 5 hosts had 100 requests
 * or more in the interval, those whose success rate is below mean − 1.9·σ; for 30 s × the number of its ejections, at
 * most 300 s; at most 10 % of the hosts, but always one. Latency is no criterion.
 */
export class EnvoyOutliers {
  readonly #hosts: Host[];
  #sweptMs = 0;

  constructor(hosts: number) {
    this.#hosts = Array.from({ length: hosts }, () => ({ inARow: 0, ok: 0, all: 0, ejections: 0, untilMs: 0 }));
  }

  answered(at: number, fault: boolean, nowMs: number): void {
    const host = this.#hosts[at]!;
    host.all += 1;
    if (!fault) {
      host.ok += 1;
      host.inARow = 0;
      return;
    }
    host.inARow += 1;
    if (host.inARow >= CONSECUTIVE) this.#eject(host, nowMs);
  }

  tick(nowMs: number): void {
    if (nowMs - this.#sweptMs < INTERVAL_MS) return;
    this.#sweptMs = nowMs;
    const seen = this.#hosts.filter(({ all }) => all >= REQUEST_VOLUME);
    if (seen.length >= MINIMUM_HOSTS) {
      const rates = seen.map(({ ok, all }) => ok / all);
      const mean = rates.reduce((sum, rate) => sum + rate, 0) / rates.length;
      const deviation = Math.sqrt(rates.reduce((sum, rate) => sum + (rate - mean) ** 2, 0) / rates.length);
      for (const [i, host] of seen.entries()) if (rates[i]! < mean - STDEV_FACTOR * deviation) this.#eject(host, nowMs);
    }
    for (const host of this.#hosts) {
      host.ok = 0;
      host.all = 0;
    }
  }

  ejected(at: number, nowMs: number): boolean {
    return this.#hosts[at]!.untilMs > nowMs;
  }

  #eject(host: Host, nowMs: number): void {
    const out = this.#hosts.filter(({ untilMs }) => untilMs > nowMs).length;
    if (host.untilMs > nowMs || (out > 0 && (out + 1) / this.#hosts.length > MAX_EJECTED)) return;
    host.ejections += 1;
    host.inARow = 0;
    host.untilMs = nowMs + Math.min(300_000, BASE_EJECTION_MS * host.ejections);
  }
}

interface Host {
  inARow: number;
  ok: number;
  all: number;
  ejections: number;
  untilMs: number;
}

const CONSECUTIVE = 5;
const INTERVAL_MS = 10_000;
const MINIMUM_HOSTS = 5;
const REQUEST_VOLUME = 100;
const STDEV_FACTOR = 1.9;
const BASE_EJECTION_MS = 30_000;
const MAX_EJECTED = 0.1;
