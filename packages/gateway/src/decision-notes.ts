import { NO_ENGINE, NO_SLOT, OUT } from "@guidevane/selector";
import type { Exchange } from "./exchange.ts";
import type { RuledOutLists } from "./ruled-out-lists.ts";

/** Notes how a request was routed, from what the selector wrote about it: `out` must still be of this request. */
export function noteRouting(exchange: Exchange, out: Uint32Array, lists: RuledOutLists): void {
  const { decision, routing, head, className } = exchange;
  const [home, second, slot, requestClass] = [out[OUT.home]!, out[OUT.second]!, out[OUT.slot]!, out[OUT.requestClass]!];
  decision.version = routing.snapshot.version;
  decision.tenant = head.tenant === null ? null : head.tenant.toString();
  decision.stream = out[OUT.stream] === 1;
  decision.first = out[OUT.first] === 1;
  decision.keySource = out[OUT.keySource]!;
  decision.slot = slot === NO_SLOT ? null : slot;
  decision.attempts = exchange.attempts;
  if (className === undefined) return;
  decision.className = className;
  decision.classNamed = head.className === className;
  decision.model = routing.snapshot.classes[className]?.model ?? null;
  decision.cell = routing.snapshot.cells[out[OUT.cell]!] ?? null;
  decision.second = second === NO_ENGINE ? null : routing.engineAt(second);
  if (home !== NO_ENGINE) {
    decision.home = routing.engineAt(home);
    decision.homeState = routing.stateAt(home);
  }
  decision.ruledOut = lists.of(routing, {
    requestClass,
    className,
    needs: out[OUT.needs]!,
    contextTokens: out[OUT.contextTokens]!,
    residency: head.residency,
  });
}
