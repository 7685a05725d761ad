import { type Fleet, knownNames, problem, showProblem } from "@guidevane/core";
import type { Change } from "@guidevane/optimizer";
import { z } from "zod";
import { AdminError } from "./admin-http.ts";

const name = z.string().min(1);
/** Of what there is now: 1.3 = 30 % more. */
const factor = z.number().min(0).max(1000);

const changeSchema = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("drain"), engine: name }),
  z.strictObject({ kind: z.literal("lose-region"), region: name }),
  z.strictObject({ kind: z.literal("demand"), factor, cluster: name.exactOptional(), class: name.exactOptional() }),
  z.strictObject({ kind: z.literal("capacity"), factor, engine: name.exactOptional() }),
  z.strictObject({
    kind: z.literal("new-engine"),
    /** Its id. */
    engine: name,
    /** The engine that it is like, but for what follows. */
    like: name,
    region: name.exactOptional(),
    capacityWps: z.number().positive().exactOptional(),
    replicas: z.int().positive().exactOptional(),
  }),
]);

const orderSchema = z.strictObject({ changes: z.array(changeSchema).min(1).max(100) });

/** What `POST /v1/what-if` takes: changes that are made one after another. */
export type WhatIfOrder = z.infer<typeof orderSchema>;

/**
 * Changes of a question to the analyst, a new engine spelt out by the one that it is like.
 *
 * @throws AdminError 400 `bad_what_if`, naming the field and its value
 */
export function parseWhatIf(data: unknown, fleet: Fleet): Change[] {
  const parsed = orderSchema.safeParse(data);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw refusal(`${issue!.path.join(".") || "(top level)"}: ${issue!.message}`);
  }
  return parsed.data.changes.map((change, at): Change => {
    if (change.kind !== "new-engine") return change;
    const { engine: id, like, kind, ...differs } = change;
    const model = fleet.engines.get(like);
    if (model === undefined)
      throw refusal(
        showProblem(
          problem(
            "unknown_name",
            `changes.${at}.like`,
            like,
            `is not an engine of the fleet file; ${knownNames(like, fleet.engines.keys())}`,
          ),
        ),
      );
    return { kind, engine: { ...model, adminState: "active", ...differs, id } };
  });
}

function refusal(message: string): AdminError {
  return new AdminError(400, "bad_what_if", message);
}
