import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { fleetOf } from "./testing/fleet.ts";
import type { RawAnswer } from "./testing/raw-client.ts";
import { CHAT, createSetup, eventually, PLAIN_BODY } from "./testing/setup.ts";

const setup = createSetup(afterEach);

/** A certificate authority, an engine's certificate for `engine.test` and a gateway's own, by the `openssl` command; null where there is none. */
function certificates(): { dir: string; pem: (name: string) => string } | null {
  const dir = mkdtempSync(join(tmpdir(), "guidevane-tls-"));
  const run = (args: string): unknown => execFileSync("openssl", args.split(" "), { cwd: dir, stdio: "pipe" });
  const key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
  try {
    run(`req -x509 ${key} -keyout ca.key -out ca.pem -days 2 -subj /CN=ca`);
    writeFileSync(join(dir, "engine.ext"), "subjectAltName=DNS:engine.test");
    for (const name of ["engine", "gateway"]) {
      run(`req ${key} -keyout ${name}.key -out ${name}.csr -subj /CN=${name}`);
      const names = name === "engine" ? " -extfile engine.ext" : "";
      run(`x509 -req -in ${name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out ${name}.pem -days 2${names}`);
    }
  } catch {
    rmSync(dir, { recursive: true });
    return null;
  }
  return { dir, pem: (name) => readFileSync(join(dir, name), "utf8") };
}

const made = certificates();
afterAll(() => made !== null && rmSync(made.dir, { recursive: true }));

describe.skipIf(made === null)("an engine behind TLS", () => {
  /** One that asks its clients for a certificate. */
  async function start(tls: string): Promise<{ answer: RawAnswer; server: Server; healthy: () => Promise<boolean> }> {
    const { pem } = made!;
    const server = createServer(
      {
        key: pem("engine.key"),
        cert: pem("engine.pem"),
        ca: pem("ca.pem"),
        requestCert: true,
        rejectUnauthorized: true,
      },
      (request, response) =>
        response.writeHead(200, { "content-type": "application/json" }).end(`{"path":"${request.url}"}`),
    );
    server.on("tlsClientError", () => undefined);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    setup.cleanups.push(() => server.close().closeAllConnections());
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const fleet = await fleetOf({ a: url }, "", `, tls: { ${tls} }`);
    const gateway = await setup.gateway(fleet, { secrets: { env: () => undefined, file: (path) => pem(path) } });
    const client = await setup.client(gateway);
    client.post(CHAT, PLAIN_BODY);
    const healthy = async (): Promise<boolean> => {
      const engines = (await (await fetch(`${gateway.adminUrl}/v1/engines`)).json()) as {
        health: string;
        healthReason: string;
      }[];
      return engines[0]?.health === "ready" && engines[0]?.healthReason === "probe answers";
    };
    return { answer: await client.answer(), server, healthy };
  }

  it("is trusted by the fleet file's authority, under the name given there, and shown the gateway's certificate", async () => {
    const { answer } = await start(
      "caFile: ca.pem, certFile: gateway.pem, keyFile: gateway.key, serverName: engine.test",
    );
    expect([answer.status, answer.body.toString()]).toEqual([200, `{"path":"${CHAT}"}`]);
  });

  it.each([
    ["the system does not know its authority", "certFile: gateway.pem, keyFile: gateway.key, serverName: engine.test"],
    [
      "its certificate has another name",
      "caFile: ca.pem, certFile: gateway.pem, keyFile: gateway.key, serverName: other.test",
    ],
    ["a file can't be read", "caFile: none.pem, certFile: gateway.pem, keyFile: gateway.key, serverName: engine.test"],
  ])("is not spoken to where %s", async (_what, tls) => {
    const { answer } = await start(tls);
    expect([answer.status, JSON.parse(answer.body.toString()).error.code]).toEqual([502, "engine_unreachable"]);
  });

  it("gets nothing from a gateway whose certificate it wants and doesn't get", async () => {
    const { answer } = await start("caFile: ca.pem, serverName: engine.test");
    expect(answer.status).toBe(502);
  });

  it("is probed in the same way", async () => {
    const { healthy } = await start(
      "caFile: ca.pem, certFile: gateway.pem, keyFile: gateway.key, serverName: engine.test",
    );
    await eventually(healthy);
  });
});
