import { GuidevaneError } from "@guidevane/core";
import { loadNative, type NativeBinding, type NativeLoad, type Want } from "@guidevane/native";
import { type HeadFacts, OUT, type Router, type RouteStatus, type SharedState } from "./router.ts";
import type { RoutingTable } from "./table.ts";
import { TsRouter } from "./ts-router.ts";

/** Makes routers of one kind, one for each table and thread. */
export interface RouterFactory {
  readonly kind: "native" | "ts";
  /** Why `auto` fell back to TypeScript; for one line in the log. */
  readonly degraded?: string;
  load(table: RoutingTable, state: SharedState): Router;
}

/** One call into the addon: a `ROUTE_STATUS`, or `NATIVE_UNUSUAL`. */
export type NativeRoute = (headWords: Uint32Array, headBytes: Uint8Array, body: Uint8Array, out: Uint32Array) => number;

/** What the addon must export for routing. */
export interface NativeRouterBinding {
  /** Copies the columns, keeps the two arrays of shared memory. */
  loadRouter(
    words: Uint32Array,
    numbers: Float64Array,
    ring: Uint16Array,
    names: Uint8Array,
    engines: Uint32Array,
    inFlight: Uint32Array,
  ): NativeRoute;
}

/**
 * The addon's word for a body that its scan leaves to `JSON.parse`: decided here, by the twin. The count of the call is
 * then in `out[OUT.keyHash]`, so that a request without a key draws the same in both twins.
 */
export const NATIVE_UNUSUAL = 255;

/**
 * `native` means the addon or an error; `auto` means the addon if it is there.
 *
 * @throws GuidevaneError `native_unavailable` when `want` is `native` and there is no addon
 */
export function createRouterFactory(want: Want, native: () => NativeLoad = loadNative): RouterFactory {
  if (want === "ts") return tsFactory;
  const load = native();
  const binding: (NativeBinding & Partial<NativeRouterBinding>) | null = load.binding;
  if (binding?.loadRouter === undefined) {
    const reason = load.binding === null ? load.reason : "the addon has no router";
    if (want === "native") throw new GuidevaneError("native_unavailable", `no native router: ${reason}`);
    return { ...tsFactory, degraded: reason };
  }
  const loadRouter = binding.loadRouter;
  return {
    kind: "native",
    load(table, state) {
      const { words, numbers, ring, names } = table.columns;
      const route = loadRouter(words, numbers, ring, names, state.engines, state.inFlight);
      return new NativeRouter(route, new TsRouter(table, state));
    },
  };
}

const tsFactory: RouterFactory = { kind: "ts", load: (table, state) => new TsRouter(table, state) };

class NativeRouter implements Router {
  readonly kind = "native";
  readonly #route: NativeRoute;
  readonly #twin: TsRouter;

  constructor(route: NativeRoute, twin: TsRouter) {
    this.#route = route;
    this.#twin = twin;
  }

  route(head: HeadFacts, body: Uint8Array, out: Uint32Array): RouteStatus {
    const status = this.#route(head.words, head.bytes, body, out);
    if (status === NATIVE_UNUSUAL) return this.#twin.routeUnusual(head, body, out, out[OUT.keyHash]!);
    return status as RouteStatus;
  }
}
