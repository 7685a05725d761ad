import { type AdminState, type Pin, type Publication, type StoredPublication, snapshotTag } from "@guidevane/core";
import { AdminError } from "./admin-http.ts";
import type { Control } from "./control.ts";
import { adminStateOf } from "./engine-state.ts";
import { withEngine, withFreeze, withPin, withPins } from "./operator.ts";
import { type PinOrder, splitPins } from "./pin.ts";
import { keysMoved } from "./published.ts";
import { rolledBack } from "./roll-back.ts";
import { storedVersion } from "./stored-version.ts";

/** What an operator may do to a running control plane. Each word is stored, logged, and heeded by the next tick. */

/**
 * Sets or lifts a word on an engine, and tells the gateways. Lifting one word leaves the other; null where the engine is
 * not known.
 */
export async function setAdminState(
  control: Control,
  id: string,
  word: "draining" | "out",
  on: boolean,
): Promise<AdminState | null> {
  const engine = control.fleet.engines.get(id);
  if (engine === undefined) return null;
  await control.operator.change((present) => withEngine(present, id, word, on));
  control.logger.info({ engine: id, word, on }, `operator: ${word} ${on ? "on" : "off"}`);
  control.feed.send(control.enginesEvent());
  control.hurry();
  return adminStateOf(engine, control.operator.state);
}

/** Holds the weights as they are, or lets the optimizer go on. Ticks go on solving and publish nothing meanwhile. */
export async function freeze(control: Control, on: boolean): Promise<void> {
  await control.operator.change((present) => withFreeze(present, on));
  // A publication that is being written would otherwise come after the answer, which names what is frozen.
  await control.writing(async () => {});
  control.logger.info({ on }, `operator: freeze ${on ? "on" : "off"}`);
  if (!on) control.hurry();
}

/** Sets or lifts a cell's pin; the next tick plans with it. */
export async function setPin(control: Control, { cluster, requestClass, pin }: PinOrder): Promise<void> {
  await control.operator.change((present) => withPin(present, cluster, requestClass, pin));
  control.logger.info({ cluster, class: requestClass, pin }, `operator: pin ${pin === null ? "off" : "on"}`);
  control.hurry();
}

/** Pins in force now. Those past their end are let go of, once. */
export function activePins(control: Control): readonly Pin[] {
  const { active, expired } = splitPins(control.operator.state.pins ?? [], control.clock.wallMs());
  if (expired.length > 0) void dropPins(control, expired);
  return active;
}

/**
 * Publishes an older version's weights and rings again, as a new version, and freezes on it.
 *
 * @throws AdminError 404 where the version is not kept; 409 where today's fleet can't have it, or nothing may be published
 */
export async function rollBack(control: Control, version: number): Promise<StoredPublication> {
  if (control.advise) throw new AdminError(409, "advise", "this control plane gives advice and publishes nothing");
  const old = await storedVersion(control, version);
  const back = rolledBack(old, control.fleet, {
    adminState: (engine) => adminStateOf(engine, control.operator.state),
    liveGateways: (cluster) => control.levels.live(cluster, control.clock.nowMs()),
    wallMs: control.clock.wallMs(),
  });
  if (!back.ok) throw cannot(version, back.why);
  const verified = await control.solver.verify(back.publication);
  const faults = verified.kind === "faults" ? verified.faults : [verified.message];
  if (faults.length > 0) throw cannot(version, faults);
  const { frozen, rolledBackTo } = control.operator.state;
  // Frozen first: a tick that is about to publish must not do so after.
  await control.operator.change((present) => withFreeze(present, true, version));
  try {
    const stored = await control.writing(() => republish(control, back.publication));
    control.logger.info({ version, as: stored.version }, `operator: rolled back to version ${version}, and frozen`);
    return stored;
  } catch (error) {
    await control.operator.change((present) => withFreeze(present, frozen === true, rolledBackTo));
    throw error;
  }
}

/** So many reasons are said; a fleet that has changed much has one for each engine. */
const MOST_REASONS = 5;

function cannot(version: number, why: readonly string[]): AdminError {
  const more = why.length > MOST_REASONS ? `; and ${why.length - MOST_REASONS} more` : "";
  return new AdminError(409, "cannot_roll_back", `version ${version}: ${why.slice(0, MOST_REASONS).join("; ")}${more}`);
}

async function republish(control: Control, publication: Publication): Promise<StoredPublication> {
  const previous = control.published.current;
  const stored = await control.store.put(publication, previous?.version ?? 0);
  control.metrics.published(stored, previous === null ? null : keysMoved(previous, stored));
  await control.published.replace(stored);
  control.feed.send({ event: "snapshot", data: { tag: snapshotTag(stored) } });
  return stored;
}

async function dropPins(control: Control, expired: readonly Pin[]): Promise<void> {
  try {
    await control.operator.change((present) =>
      withPins(
        present,
        (present.pins ?? []).filter((pin) => !expired.includes(pin)),
      ),
    );
    for (const { cluster, class: requestClass } of expired)
      control.logger.info({ cluster, class: requestClass }, "operator: pin expired");
    control.conditions.ends("pins", "expired pins are let go of again");
  } catch (error) {
    // They are past their end all the same, and the next tick tries again.
    control.conditions.begins("pins", "store", `an expired pin can't be taken from the store: ${String(error)}`);
  }
}
