import { EMULATED_KINDS } from "@guidevane/simulator";
import { expect, it } from "vitest";
import { KINDS } from "./command-emulate.ts";

it("offers every kind of engine that the simulator emulates", () => {
  expect(KINDS).toEqual(Object.keys(EMULATED_KINDS));
});
