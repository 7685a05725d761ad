import { describe, expect, it } from "vitest";
import { loadCredentials } from "./credentials.ts";
import { fleetOf } from "./testing/fleet.ts";

describe("an engine's key", () => {
  const load = async (key: string | undefined): Promise<[readonly string[], string[]]> => {
    const fleet = await fleetOf({ a: "http://10.0.0.1" }, "", ", auth: { keyEnv: KEY }");
    const missing: string[] = [];
    const all = loadCredentials(fleet, { env: () => key, file: () => "" }, (engine, why) => missing.push(engine + why));
    return [all.get("a")?.headers ?? [], missing];
  };

  it("is trimmed, and put on every request", async () => {
    expect(await load("\n sk-1 \r\n")).toEqual([["authorization", "Bearer sk-1"], []]);
  });

  it.each([
    [undefined, "is not set"],
    [" \n", "is empty"],
    ["sk-1\nx-evil: 1", "has characters that no header may have"],
    ["sk-\u010a", "has characters that no header may have"],
    ["sk-\u00e9", "has characters that no header may have"],
  ])("is none where it is %j, and told of without the key", async (key, why) => {
    expect(await load(key)).toEqual([[], [`akeyEnv KEY ${why}`]]);
  });
});
