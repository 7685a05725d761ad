import { describe, expect, it } from "vitest";
import { ABI } from "./binding.ts";
import { type AddonSource, attemptLoad, loadNative, type NativeLoad } from "./load.ts";

const nothing: AddonSource = {
  triple: () => "plan9-mips",
  has: () => false,
  load: () => {
    throw new Error("never asked");
  },
};

/** The load as one that found nothing; anything else fails the test. */
function failed(load: NativeLoad) {
  if (load.binding !== null) throw new Error(`unexpectedly loaded ${load.path}`);
  return load;
}

describe("loading the addon", () => {
  it("gives a reason when it is turned off, and looks nowhere", () => {
    expect(attemptLoad("off")).toEqual({
      binding: null,
      reason: "turned off by GUIDEVANE_NATIVE=off",
      tried: [],
    });
  });

  it("gives a reason for a setting it does not know, so that a misspelt `off` is seen", () => {
    const load = attemptLoad("offf");
    expect(load.binding).toBeNull();
    expect(load).toMatchObject({ reason: "GUIDEVANE_NATIVE=offf is not a setting; known: off, auto" });
  });

  it("names each place it tried when there is no addon", () => {
    const load = attemptLoad(undefined, nothing);
    const { reason, tried } = failed(load);
    expect(tried).toHaveLength(2);
    expect(tried[0]).toMatch(/native\/guidevane\.plan9-mips\.node: not there$/);
    expect(tried[1]).toBe("@guidevane/native-plan9-mips: not there");
    expect(reason).toContain("no addon for plan9-mips");
  });

  it("refuses an addon of another ABI and goes on to the next place", () => {
    const old = { abi: () => ABI - 1 };
    const right = { abi: () => ABI };
    const load = attemptLoad(undefined, {
      ...nothing,
      has: () => true,
      load: (path) => (path.startsWith("@") ? right : old),
    });
    expect(load).toEqual({ binding: right, path: "@guidevane/native-plan9-mips" });
    const none = attemptLoad(undefined, { ...nothing, has: () => true, load: () => old });
    expect(failed(none).reason).toContain(`has ABI ${ABI - 1}, this package needs ${ABI}`);
  });

  it("turns what loading throws, and what is no addon, into reasons", () => {
    const broken = attemptLoad(undefined, {
      ...nothing,
      has: () => true,
      load: (path) => {
        if (path.startsWith("@")) return null;
        throw new Error("invalid ELF header\nand a page more");
      },
    });
    const { tried } = failed(broken);
    expect(tried[0]).toMatch(/: invalid ELF header$/);
    expect(tried[1]).toMatch(/: is not this addon$/);
  });

  it("answers the same on every call of a thread", () => {
    expect(loadNative()).toBe(loadNative());
  });
});
