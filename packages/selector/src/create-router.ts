import {
  chooseTwin,
  loadNative,
  type NativeBinding,
  type NativeLoad,
  type RouteFunction,
  type Want,
} from "@guidevane/native";
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
  /**
   * Reads the table for the whole process, on a thread that routes nothing: the others then load it in a moment.
   */
  share(table: RoutingTable, state: SharedState): SharedTable;
}

export interface SharedTable {
  /** To be sent to the threads that route. */
  readonly table: RoutingTable;
  /** Keep it until they have loaded the table: with the last one who holds it what was read is gone. */
  readonly hold: unknown;
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
    load: (table, state) => new NativeRouter(attach(binding, table, state), new TsRouter(table, state)),
    share(table, state) {
      const hold = read(binding, table, state);
      return { table: { ...table, nativeId: hold.tableId }, hold };
    },
  };
}

function read(binding: NativeBinding, { columns }: RoutingTable, state: SharedState): RouteFunction {
  const { words, numbers, ring, names } = columns;
  const { engines, version, inFlight, moves, cells } = state;
  return binding.loadRouter(words, numbers, ring, names, engines, version, inFlight, moves, cells);
}

/** By what was read for the process, if it is still held; else read here. */
function attach(binding: NativeBinding, table: RoutingTable, state: SharedState): RouteFunction {
  const { engines, version, inFlight, moves, cells } = state;
  const shared =
    table.nativeId === undefined
      ? null
      : binding.attachRouter(table.nativeId, engines, version, inFlight, moves, cells);
  return shared ?? read(binding, table, state);
}

const tsFactory: RouterFactory = {
  kind: "ts",
  load: (table, state) => new TsRouter(table, state),
  share: (table) => ({ table, hold: null }),
};

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
