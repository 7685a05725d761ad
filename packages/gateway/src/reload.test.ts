import { afterEach, describe, expect, it } from "vitest";
import { fleetOf } from "./testing/fleet.ts";
import { type EngineRequestSeen, jsonAnswer } from "./testing/scripted-engine.ts";
import { CHAT, createSetup, PLAIN_BODY } from "./testing/setup.ts";

const setup = createSetup(afterEach);
const good = ({ socket }: EngineRequestSeen): void => {
  socket.write(jsonAnswer("{}"));
};

async function start() {
  const engine = await setup.engine(good);
  const withKey = (key: string, extra = "") => fleetOf({ a: engine.url }, extra, `, auth: { keyEnv: ${key} }`);
  const gateway = await setup.gateway(await withKey("OLD"), {
    secrets: { env: (name) => `secret-${name}`, file: () => "" },
  });
  const client = await setup.client(gateway);
  const ask = async (body = PLAIN_BODY) => {
    client.post(CHAT, body);
    return (await client.answer()).status;
  };
  const keySent = () => engine.requests.at(-1)!.headers.find(([name]) => name.toLowerCase() === "authorization")?.[1];
  return { withKey, gateway, ask, keySent };
}

describe("another fleet file", () => {
  it("gives the next request its credentials and its settings", async () => {
    const { withKey, gateway, ask, keySent } = await start();
    expect([await ask(), keySent()]).toEqual([200, "Bearer secret-OLD"]);
    const keys = gateway.reload(await withKey("NEW", "gateway: { limits: { bodyBytes: 60 } }"));
    expect(keys.filter((key) => key.startsWith("gateway."))).toEqual([]);
    expect([await ask(), keySent()]).toEqual([200, "Bearer secret-NEW"]);
    expect(await ask(PLAIN_BODY.replace("hé", "hé".repeat(60)))).toBe(413);
  });

  it("B137: names the keys that only a restart makes true", async () => {
    const { withKey, gateway } = await start();
    const more = "gateway: { limits: { headBytes: 2048 }, timers: { connectMs: 500, idleMs: 500 } }";
    expect(gateway.reload(await withKey("OLD", more))).toEqual([
      "gateway.limits.headBytes",
      "gateway.timers.connectMs",
    ]);
    // It still routes by its own file, and not by a snapshot.
    expect(gateway.reload(await withKey("NEW", more))).toEqual(["engines (until the first snapshot comes)"]);
  });

  it("B136: is refused without the gateway's cluster, and the present one stays", async () => {
    const { withKey, gateway, ask, keySent } = await start();
    const next = await withKey("NEW");
    expect(() => gateway.reload({ ...next, clusters: new Map() })).toThrow(
      'clusters: the gateway\'s own cluster is not in the fleet file (got "east")',
    );
    expect([await ask(), keySent()]).toEqual([200, "Bearer secret-OLD"]);
  });
});
