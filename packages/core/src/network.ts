import { refuse } from "./document.ts";
import { type InputProblem, problem } from "./errors.ts";

/** Round trips between places. Names are regions or clusters; a cluster's own row wins over its region's. */
export interface Network {
  readonly defaultRttMs: number;
  /** Keyed `from\nto`; both directions are looked up. */
  readonly rttMs: ReadonlyMap<string, number>;
}

/** Where a request starts: its cluster, or the cluster's region. */
export interface Place {
  readonly name: string;
  readonly region: string;
}

/** Round trip between a cluster and an engine's region, and whether a row said so. */
export function rttBetween(network: Network, from: Place, region: string): { rttMs: number; known: boolean } {
  const found =
    lookUp(network, from.name, region) ??
    lookUp(network, from.region, region) ??
    (from.region === region ? 0 : undefined);
  return { rttMs: found ?? network.defaultRttMs, known: found !== undefined };
}

function lookUp(network: Network, a: string, b: string): number | undefined {
  return network.rttMs.get(pairKey(a, b)) ?? network.rttMs.get(pairKey(b, a));
}

function pairKey(from: string, to: string): string {
  return `${from}\n${to}`;
}

/**
 * An RTT file: CSV with the header `from,to,rtt_ms`; further columns are ignored, empty lines and `#` lines too.
 *
 * @throws GuidevaneError `bad_network`, naming the line and the value
 */
export function parseRttCsv(text: string, name: string): Map<string, number> {
  const rows = new Map<string, number>();
  const problems: InputProblem[] = [];
  let columns: { from: number; to: number; rtt: number } | undefined;
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === "" || line.startsWith("#")) continue;
    const cells = line.split(",").map((cell) => cell.trim());
    if (columns === undefined) {
      columns = { from: cells.indexOf("from"), to: cells.indexOf("to"), rtt: cells.indexOf("rtt_ms") };
      if (columns.from < 0 || columns.to < 0 || columns.rtt < 0) {
        problems.push(problem("missing_key", `${name}:${index + 1}`, line, "the header must name from, to and rtt_ms"));
        break;
      }
      continue;
    }
    const rttMs = Number(cells[columns.rtt] ?? "");
    const [from, to] = [cells[columns.from], cells[columns.to]];
    if (!from || !to || cells[columns.rtt] === "" || !Number.isFinite(rttMs) || rttMs < 0) {
      problems.push(
        problem("invalid_value", `${name}:${index + 1}`, line, "needs two names and an rtt_ms of 0 or more"),
      );
    } else {
      rows.set(pairKey(from, to), rttMs);
    }
  }
  refuse("bad_network", name, problems);
  return rows;
}
