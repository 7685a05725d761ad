import { afterEach, describe, expect, it } from "vitest";
import { createProber, MAX_PAGE_BYTES, type Prober, probeUrl } from "./engine-probe.ts";
import { testFleet } from "./testing/fleet.ts";
import { serve, type TestServer } from "./testing/http.ts";

let server: TestServer | undefined;
let prober: Prober;
afterEach(async () => {
  await prober.close();
  await server?.close();
  server = undefined;
});

async function ask(port: number, timeoutMs = 5000): ReturnType<Prober["ask"]> {
  prober = createProber(timeoutMs);
  const engine = (await testFleet({ e1: port })).engines.get("e1")!;
  return prober.ask(engine, engine.metrics, "/metrics");
}

describe("a question to an engine", () => {
  it("brings status and body", async () => {
    server = await serve((req, res) => res.writeHead(203).end(`asked ${req.url}`));
    expect(await ask(server.port)).toEqual({ kind: "answer", status: 203, body: "asked /metrics" });
  });

  it("is refused by a port that nobody listens on", async () => {
    const gone = await serve(() => {});
    await gone.close();
    expect(await ask(gone.port)).toEqual({ kind: "refused", message: "connection refused" });
  });

  it.each([
    ["nothing comes", () => {}],
    ["the body never ends", (response: import("node:http").ServerResponse) => response.writeHead(200).write("x")],
  ])("is given up in time when %s", async (_title, answer) => {
    server = await serve((_request, response) => void answer(response));
    expect((await ask(server.port, 50)).kind).toBe("timeout");
  });

  it("is broken off at 10 MB", async () => {
    let sent = 0;
    server = await serve((_request, response) => {
      const chunk = Buffer.alloc(1_000_000);
      const more = () => {
        while (!response.destroyed && response.write(chunk)) sent += chunk.length;
        sent += chunk.length;
      };
      response.on("drain", more);
      more();
    });
    expect((await ask(server.port)).kind).toBe("too-large");
    expect(sent).toBeGreaterThanOrEqual(MAX_PAGE_BYTES);
  });

  it("fails with the reason when the connection breaks", async () => {
    server = await serve((request) => request.socket.destroy());
    expect(await ask(server.port)).toMatchObject({
      kind: "failed",
      message: expect.stringMatching(/UND_ERR_SOCKET|ECONNRESET/),
    });
  });

  it("ends with its prober", async () => {
    let arrive = () => {};
    const arrived = new Promise<void>((resolve) => {
      arrive = resolve;
    });
    server = await serve(() => arrive());
    const asked = ask(server.port, 60_000);
    await arrived;
    await prober.close();
    expect((await asked).kind).toBe("failed");
  });
});

it("B139: goes under the engine's path prefix, at the probe's port where it has one", () => {
  prober = createProber(10);
  const at = (url: string, port: number | null) =>
    probeUrl({ url }, { path: null, pathIsDefault: true, port }, "/health");
  expect(at("http://h:8000", null)).toBe("http://h:8000/health");
  expect(at("http://h:8000/base", null)).toBe("http://h:8000/base/health");
  expect(at("https://h/base", 9090)).toBe("https://h:9090/base/health");
});
