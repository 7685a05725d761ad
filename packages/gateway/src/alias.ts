import { OUT } from "@guidevane/selector";
import type { ApiError } from "./api-error.ts";
import type { Exchange } from "./exchange.ts";

/** Say something of the bytes that were sent, which are others now (RFC 9530, RFC 1864). */
const OF_THE_BYTES = ["content-digest", "repr-digest", "digest", "content-md5"];

/**
 * Puts the model's own name where the body names it by an alias: an engine knows only that one. No other byte changes. A
 * body that was compressed goes on as plain text, since nothing can be changed in it as it is.
 *
 * @param out what the router found, which holds until the next await
 * @returns the refusal of a body in which the name's place can't be found; null = done, or there was nothing to do
 */
export function resolveAlias(exchange: Exchange, out: Uint32Array): ApiError | null {
  if (out[OUT.aliased] !== 1 || exchange.className === undefined) return null;
  const { text, routing, className } = exchange;
  const [start, end] = [out[OUT.modelStart]!, out[OUT.modelEnd]!];
  if (end <= start)
    return {
      status: 400,
      code: "invalid_json",
      message: "the place of the body's model can't be found",
      param: "model",
    };
  const name = JSON.stringify(routing.snapshot.classes[className]!.model).slice(1, -1);
  exchange.withheld = [...exchange.withheld, ...OF_THE_BYTES, ...(text === exchange.body ? [] : ["content-encoding"])];
  exchange.body = Buffer.concat([text.subarray(0, start), Buffer.from(name), text.subarray(end)]);
  return null;
}
