import { describe, expect, it } from "vitest";
import { hostTriple } from "./triple.ts";

const host = (platform: string, arch: string, musl = false) => hostTriple({ platform, arch, isMusl: () => musl });

describe("the host's triple", () => {
  it("is napi-rs's name for each platform", () => {
    expect(host("linux", "x64")).toBe("linux-x64-gnu");
    expect(host("linux", "arm64", true)).toBe("linux-arm64-musl");
    expect(host("linux", "arm")).toBe("linux-arm-gnueabihf");
    expect(host("darwin", "arm64")).toBe("darwin-arm64");
    expect(host("win32", "x64")).toBe("win32-x64-msvc");
  });

  // Node's own report names glibc only when it is linked with it: a second opinion on the loader found in the program.
  it.skipIf(process.platform !== "linux")("agrees with Node's report about the C library (Linux only)", () => {
    const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
    expect(hostTriple().split("-")[2]).toMatch(header.glibcVersionRuntime === undefined ? /^musl/ : /^gnu/);
  });
});
