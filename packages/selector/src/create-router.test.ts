import type { NativeBinding } from "@guidevane/native";
import { expect, it, vi } from "vitest";
import { createRouterFactory, NATIVE_UNUSUAL } from "./create-router.ts";
import { CHAT_BODY, Driver } from "./driver.fixture.ts";
import { OUT, ROUTE_STATUS } from "./router.ts";
import { makeSnapshot } from "./snapshot.fixture.ts";

const snapshot = makeSnapshot([
  {
    class: "chat",
    engines: [
      { id: "a", weight: 0.5 },
      { id: "b", weight: 0.5 },
    ],
  },
]);
const absent = () => ({ binding: null, reason: "no addon for this machine", tried: [] });

function addonThat(route: (out: Uint32Array) => number) {
  const call = vi.fn((_words: Uint32Array, _bytes: Uint8Array, _body: Uint8Array, out: Uint32Array) => route(out));
  const loadRouter = vi.fn(() => call);
  return { call, loadRouter, load: () => ({ binding: { loadRouter } as unknown as NativeBinding, path: "x" }) };
}

it("gives TypeScript when asked for it, without looking for the addon", () => {
  const look = vi.fn(absent);
  expect(createRouterFactory("ts", look)).toMatchObject({ kind: "ts", load: expect.any(Function) });
  expect(look).not.toHaveBeenCalled();
});

it("falls back and says why when the addon may be missing", () => {
  const factory = createRouterFactory("auto", absent);
  expect([factory.kind, factory.degraded]).toEqual(["ts", "no addon for this machine"]);
  expect(new Driver(factory, snapshot).route()).not.toBe(null);
});

it("refuses when the addon must be there and isn't", () => {
  expect(() => createRouterFactory("native", absent)).toThrow(
    expect.objectContaining({
      code: "native_unavailable",
      message: expect.stringContaining("no addon for this machine"),
    }),
  );
});

it("crosses into the addon once per request, and loads a table once", () => {
  const addon = addonThat(() => ROUTE_STATUS.modelNotFound);
  const factory = createRouterFactory("auto", addon.load);
  expect([factory.kind, factory.degraded]).toEqual(["native", undefined]);
  const driver = new Driver(factory, snapshot);
  driver.route(CHAT_BODY);
  expect(driver.status).toBe("modelNotFound");
  driver.route(CHAT_BODY);
  expect(addon.call).toHaveBeenCalledTimes(2);
  expect(addon.loadRouter).toHaveBeenCalledTimes(1);
});

it("has the twin decide a body that the addon finds unusual, by the addon's count of the call", () => {
  const places = new Set<number>();
  let count = 0;
  const addon = addonThat((out) => {
    count += 1;
    out[OUT.keyHash] = count;
    return NATIVE_UNUSUAL;
  });
  const native = new Driver(createRouterFactory("native", addon.load), snapshot);
  const ts = new Driver(createRouterFactory("ts"), snapshot);
  for (let i = 0; i < 20; i++) {
    expect(native.route('{"model":"x","model":"m-chat"}')).toBe(ts.route('{"model":"x","model":"m-chat"}'));
    expect(Array.from(native.out)).toEqual(Array.from(ts.out));
    places.add(native.out[OUT.slot]!);
  }
  expect(places.size).toBeGreaterThan(10);
});
