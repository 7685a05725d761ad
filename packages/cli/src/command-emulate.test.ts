import { EMULATED_KINDS } from "@guidevane/simulator";
import { expect, it } from "vitest";
import { KINDS } from "./command-emulate.ts";
import { runProgram } from "./program.ts";

it("offers every kind of engine that the simulator emulates", () => {
  expect(KINDS).toEqual(Object.keys(EMULATED_KINDS));
});

it.each([
  [[], "--port, --model, --profile: required without --fleet"],
  [["--model", "demo"], "--port, --profile: required without --fleet"],
])("says of all that is missing at once: emulate %j", async (args, says) => {
  let error = "";
  const code = await runProgram(["emulate", ...args], {
    out: () => {},
    err: (text) => {
      error += text;
    },
  });
  expect({ code, error }).toEqual({ code: 2, error: `guidevane: ${says}\n` });
});
