import { chooseTwin, loadNative, type NativeLoad, type RouteFunction, type Want } from "@guidevane/native";
import { type HeadFacts, OUT, type Router, type RouteStatus } from "./router.ts";
import type { SharedState } from "./shared-state.ts";
import type { RoutingTable } from "./table.ts";
import { TsRouter } from "./ts-router.ts";

/** Makes routers of one kind, one for each table and thread. */
export interface RouterFactory {
  readonly kind: "native" | "ts";
  /** Why `auto` fell back to TypeScript; for one line in the log. */
  readonly degraded?: string;
  load(table: RoutingTable, state: SharedState): Router;
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
  const { binding, ...choice } = chooseTwin(want, "router", native);
  if (binding === null) return { ...tsFactory, ...choice };
  return {
    kind: "native",
    load(table, state) {
      const { words, numbers, ring, names } = table.columns;
      const { engines, version, inFlight, moves, cells } = state;
      const route = binding.loadRouter(words, numbers, ring, names, engines, version, inFlight, moves, cells);
      return new NativeRouter(route, new TsRouter(table, state));
    },
  };
}

const tsFactory: RouterFactory = { kind: "ts", load: (table, state) => new TsRouter(table, state) };

class NativeRouter implements Router {
  readonly kind = "native";
  readonly #route: RouteFunction;
  readonly #twin: TsRouter;

  constructor(route: RouteFunction, twin: TsRouter) {
    this.#route = route;
    this.#twin = twin;
  }

  route(head: HeadFacts, body: Uint8Array, out: Uint32Array): RouteStatus {
    const status = this.#route(head.words, head.bytes, body, out);
    if (status === NATIVE_UNUSUAL) return this.#twin.routeUnusual(head, body, out, out[OUT.keyHash]!);
    return status as RouteStatus;
  }
}
