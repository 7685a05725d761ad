import type { AdminState, OperatorState, Pin, Store } from "@guidevane/core";

/** What an operator has said. Each word is stored first and counts then, one after another: two at once could keep the older. */
export class Operator {
  readonly #store: Store;
  #state: OperatorState = { engines: {} };
  #writes: Promise<unknown> = Promise.resolve();

  constructor(store: Store) {
    this.#store = store;
  }

  get state(): OperatorState {
    return this.#state;
  }

  get frozen(): boolean {
    return this.#state.frozen === true;
  }

  /** @throws GuidevaneError `store_unreadable` */
  async load(): Promise<void> {
    this.#state = await this.#store.getOperator();
  }

  /** @throws what the store throws; then nothing has changed */
  change(next: (present: OperatorState) => OperatorState): Promise<void> {
    const write = this.#writes.then(async () => {
      const state = next(this.#state);
      await this.#store.putOperator(state);
      this.#state = state;
    });
    this.#writes = write.catch(() => {});
    return write;
  }

  /** Resolves when all that was said is stored. */
  async settled(): Promise<void> {
    await this.#writes;
  }
}

/** Sets or lifts a word on an engine; lifting one word leaves the other. */
export function withEngine(state: OperatorState, id: string, word: Exclude<AdminState, "active">, on: boolean) {
  const engines = { ...state.engines };
  if (on) engines[id] = word;
  else if (engines[id] === word) delete engines[id];
  return { ...state, engines };
}

/** Freezes, on a version that was brought back where one is named; or lets go. */
export function withFreeze(state: OperatorState, on: boolean, rolledBackTo?: number): OperatorState {
  const { frozen: _frozen, rolledBackTo: _version, ...rest } = state;
  if (!on) return rest;
  return { ...rest, frozen: true, ...(rolledBackTo === undefined ? {} : { rolledBackTo }) };
}

/** Puts a pin in the place of the cell's present one; null takes that away. */
export function withPin(state: OperatorState, cluster: string, requestClass: string, pin: Pin | null): OperatorState {
  const others = (state.pins ?? []).filter((each) => each.cluster !== cluster || each.class !== requestClass);
  return withPins(state, pin === null ? others : [...others, pin]);
}

export function withPins(state: OperatorState, pins: readonly Pin[]): OperatorState {
  const { pins: _pins, ...rest } = state;
  return pins.length === 0 ? rest : { ...rest, pins };
}
