import type { EngineKind } from "@guidevane/core";
import type { PrometheusPage } from "../prometheus-text.ts";
import type { Dialect } from "./dialect.ts";
import { llamacppDialect } from "./llamacpp.ts";
import { poolDialect } from "./pool.ts";
import { sglangDialect } from "./sglang.ts";
import { tgiDialect } from "./tgi.ts";
import { tritonDialect } from "./triton.ts";
import { trtllmDialect } from "./trtllm.ts";
import { vllmDialect } from "./vllm.ts";

const DIALECTS: readonly Dialect[] = [
  vllmDialect,
  sglangDialect,
  tgiDialect,
  trtllmDialect,
  tritonDialect,
  llamacppDialect,
  poolDialect,
];

/** The dialect of a kind, or null for one that has no metrics. */
export function dialectOf(kind: EngineKind): Dialect | null {
  return DIALECTS.find((dialect) => dialect.kind === kind) ?? null;
}

/** Whether any dialect reads a series of this name. */
export function wantedByAny(name: string): boolean {
  return DIALECTS.some((dialect) => dialect.wants(name));
}

/**
 * The dialect that a page is in, whatever kind the fleet file says: that kind's own where the page has any of its series,
 * else the one whose series it has. Null where it has nobody's.
 *
 * @param page parsed with `wantedByAny`
 */
export function dialectOfPage(page: PrometheusPage, kind: EngineKind): Dialect | null {
  const has = (dialect: Dialect): boolean => [...page.samples.keys()].some((name) => dialect.wants(name));
  const own = dialectOf(kind);
  if (own !== null && has(own)) return own;
  return DIALECTS.find(has) ?? null;
}
