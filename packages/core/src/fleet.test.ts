import { describe, expect, it } from "vitest";
import { GuidevaneError, type InputProblem } from "./errors.ts";
import { type Fleet, loadFleet, profileOf, rttMsOf } from "./fleet.ts";
import { fleetJsonSchema, NOT_SUPPORTED_YET } from "./fleet-schema.ts";
import { GENERIC_PROFILE } from "./profile.ts";

const profileText = `
profile: h100-llama-70b
model: llama-3.1-70b
reference: { promptTokens: 512, outputTokens: 256 }
work: { prefillPerKtok: 0.703125, decodePerKtok: 2.5 }
prefillMsPerTok: 0.06
loop: open
capacityWps: 12.5
ttftMs: [[0, 42], [0.5, 60], [0.8, 105], [0.9, 190], [0.97, 420]]
tbotMs: [[0, 9.1], [0.5, 11.0], [0.9, 15.2]]
`;

const files: Readonly<Record<string, string>> = {
  "profiles/h100.yaml": profileText,
  "rtt.csv": "from,to,rtt_ms\nus-east-1,us-west-2,62\n",
};

const whole = `
clusters: { us-east: { region: us-east-1 } }
engines:
  use1-a:
    url: http://10.1.0.4:8000/
    region: us-east-1
    models: [llama-3.1-70b]
    profile: h100
    replicas: 4
  usw2-a:
    url: https://10.2.0.4/prefix/
    region: us-west-2
    models: [llama-3.1-70b, small]
    capacityWps: 9
classes:
  chat: { model: llama-3.1-70b, priority: 10 }
network: { file: rtt.csv }
profiles: { h100: { file: profiles/h100.yaml } }
demandRps: { us-east: { chat: 40 } }
`;

function load(text: string): Promise<Fleet> {
  return loadFleet(text, "fleet.yaml", async (path) => {
    const found = files[path];
    if (found === undefined) throw new Error(`no such file: ${path}`);
    return found;
  });
}

async function refused(text: string): Promise<GuidevaneError> {
  const error = await load(text).then(
    () => new Error("the file was taken"),
    (reason: unknown) => reason,
  );
  if (GuidevaneError.is(error)) return error;
  throw error;
}

/** The one problem of a file that has one. */
async function problemOf(text: string): Promise<InputProblem> {
  const { problems } = await refused(text);
  expect(problems).toHaveLength(1);
  return problems[0]!;
}

describe("a good fleet file", () => {
  it("is read with every default in place", async () => {
    const fleet = await load(whole);
    expect(fleet.engines.get("use1-a")).toEqual({
      id: "use1-a",
      url: "http://10.1.0.4:8000",
      kind: "vllm",
      region: "us-east-1",
      models: ["llama-3.1-70b"],
      profile: "h100",
      capacityWps: 12.5,
      replicas: 4,
      compute: null,
      capabilities: null,
      residency: null,
      maxContextTokens: null,
      maxStreams: null,
      adminState: "active",
      auth: {},
      tls: {},
      health: { path: "/health", pathIsDefault: true, port: null, intervalMs: 2000 },
      metrics: { path: "/metrics", pathIsDefault: true, port: null },
    });
    expect(fleet.policy).toEqual({
      tickMs: 5000,
      solveMs: 2000,
      headroom: 0.06,
      headroomMs: 6000,
      gateMs: 0.5,
      churnMs: 1,
      slots: 4096,
    });
    expect(fleet.gateway.retry).toEqual({
      attempts: 2,
      maxRatio: 0.2,
      floorPer10s: 1,
      startTokens: 3,
      retryAfterCapMs: 30_000,
    });
    expect(fleet.gateway.timers.holdHeadMs).toBe(10_000);
    expect(fleet.gateway.timers.headMs).toBe(300_000);
    expect(fleet.gateway.trustHeaders).toBe(true);
    expect(fleet.demandRps.get("us-east")?.get("chat")).toBe(40);
  });

  it("gives a class of its own to a model that no class names, with the reference request's tokens", async () => {
    const fleet = await load(whole);
    expect([...fleet.classes.keys()]).toEqual(["chat", "small"]);
    expect(fleet.classes.get("small")).toEqual({
      name: "small",
      model: "small",
      priority: 0,
      work: 1,
      promptTokens: 512,
      outputTokens: 256,
      firstTokenMs: null,
      needs: { capabilities: [], residency: [], compute: [], contextTokens: 0, networkMs: null },
    });
  });

  it("counts a class's work by its tokens and the model's first profile", async () => {
    const fleet = await load(whole.replace("priority: 10 }", "priority: 10, promptTokens: 2048, outputTokens: 100 }"));
    // 2.048 · 0.703125 + 0.1 · 2.5
    expect(fleet.classes.get("chat")?.work).toBeCloseTo(1.69, 10);
  });

  it("lets an engine's own capacity win over its profile's", async () => {
    const fleet = await load(whole.replace("replicas: 4", "capacityWps: 7"));
    expect(fleet.engines.get("use1-a")?.capacityWps).toBe(7);
  });

  it("has warnings for an engine on the generic curve and for a round trip that no row gives", async () => {
    const fleet = await load(whole.replace("network: { file: rtt.csv }", ""));
    expect(fleet.warnings).toEqual([
      "engines.usw2-a has no profile: the generic curve is used",
      "no round trip from cluster us-east (us-east-1) to us-west-2: 100 ms assumed for engine usw2-a",
    ]);
  });

  it("has warnings for demand beyond all capacity and for a profile of another model", async () => {
    expect((await load(whole.replace("chat: 40", "chat: 900"))).warnings.at(-1)).toBe(
      "demandRps asks for 900 units of work/s and active engines hold 59: some is shed",
    );
    const foreign = await load(whole.replace("[llama-3.1-70b]", "[llama-3.1-8b, llama-3.1-70b]"));
    expect(foreign.warnings.some((each) => each.includes("measured for"))).toBe(false);
    const other = whole.replace("[llama-3.1-70b]", "[small]");
    expect((await load(other)).warnings).toContain(
      "engines.use1-a serves small by a profile measured for llama-3.1-70b",
    );
  });

  it("finds profiles and round trips for its engines", async () => {
    const fleet = await load(whole);
    const [near, far] = [fleet.engines.get("use1-a")!, fleet.engines.get("usw2-a")!];
    const cluster = fleet.clusters.get("us-east")!;
    expect(profileOf(fleet, near).profile).toBe("h100-llama-70b");
    expect(profileOf(fleet, far)).toBe(GENERIC_PROFILE);
    expect(rttMsOf(fleet, cluster, near)).toBe(0);
    expect(rttMsOf(fleet, cluster, far)).toBe(62);
  });

  it("may be empty of engines", async () => {
    const fleet = await load("clusters: { a: { region: r } }");
    expect([...fleet.engines.keys(), ...fleet.classes.keys()]).toEqual([]);
  });

  it("reads no probes for an engine that is only known to speak OpenAI", async () => {
    const fleet = await load(whole.replace("replicas: 4", "kind: openai"));
    const engine = fleet.engines.get("use1-a")!;
    expect([engine.health.path, engine.metrics.path]).toEqual([null, null]);
  });
});

describe("a bad fleet file is refused with one problem, naming path and value", () => {
  const cases: readonly [string, string, Partial<InputProblem>][] = [
    [
      "an unknown key",
      whole.replace("replicas: 4", "replicaz: 4"),
      { code: "unknown_key", path: "engines.use1-a.replicaz", value: "4" },
    ],
    [
      "no cluster at all",
      "clusters: {}\n",
      { path: "clusters", value: "{}", message: "a fleet needs a cluster: requests arrive nowhere else" },
    ],
    ["an unknown key at the top", `${whole}\nclustres: {}\n`, { code: "unknown_key", path: "clustres", value: "{}" }],
    [
      "a key without its unit",
      `${whole}\npolicy: { tick: 5000 }\n`,
      { code: "missing_unit", path: "policy.tick", value: "5000", message: "has no unit in its name; write `tickMs`" },
    ],
    [
      "a capacity without its unit",
      whole.replace("replicas: 4", "capacity: 12"),
      { code: "missing_unit", path: "engines.use1-a.capacity", value: "12" },
    ],
    [
      "a round trip without its unit",
      whole.replace("network: { file: rtt.csv }", "network: { defaultRtt: 80 }"),
      { code: "missing_unit", path: "network.defaultRtt", value: "80" },
    ],
    [
      "an interval of probes without its unit",
      whole.replace("replicas: 4", "health: { interval: 500 }"),
      { code: "missing_unit", path: "engines.use1-a.health.interval", value: "500" },
    ],
    [
      "a name that JavaScript has taken",
      whole.replace("  usw2-a:", "  __proto__:"),
      { code: "invalid_value", value: '"__proto__"', message: "is not read as a name" },
    ],
    [
      "a capacity whose sum has no end",
      whole.replace("capacityWps: 9", "capacityWps: 1.0e+308"),
      { code: "invalid_value", path: "engines.usw2-a.capacityWps", value: "1e+308" },
    ],
    ["an engine id given twice", whole.replace("  usw2-a:", "  use1-a:"), { code: "duplicate_id", value: '"use1-a"' }],
    [
      "a profile that is not there",
      whole.replace("profile: h100\n", "profile: h200\n    capacityWps: 3\n"),
      { code: "unknown_profile", path: "engines.use1-a.profile", value: '"h200"' },
    ],
    [
      "a negative capacity",
      whole.replace("capacityWps: 9", "capacityWps: -9"),
      { code: "invalid_value", path: "engines.usw2-a.capacityWps", value: "-9" },
    ],
    [
      "a capacity of zero",
      whole.replace("capacityWps: 9", "capacityWps: 0"),
      { code: "invalid_value", path: "engines.usw2-a.capacityWps", value: "0" },
    ],
    [
      "a capacity that is not a number",
      whole.replace("capacityWps: 9", "capacityWps: .nan"),
      { code: "invalid_value", path: "engines.usw2-a.capacityWps", value: "NaN" },
    ],
    [
      "a class that no engine can serve",
      whole
        .replace("priority: 10 }", "needs: { capabilities: [vision] } }")
        .replaceAll("models: [llama", "capabilities: [tools]\n    models: [llama"),
      { code: "class_unservable", path: "classes.chat", value: '"llama-3.1-70b"' },
    ],
    [
      "a class whose model no engine has",
      whole.replace("chat: { model: llama-3.1-70b", "chat: { model: llama-9"),
      { code: "class_unservable", path: "classes.chat", value: '"llama-9"' },
    ],
    [
      "no profile and no capacity",
      whole.replace("capacityWps: 9", "replicas: 1"),
      { code: "missing_key", path: "engines.usw2-a.capacityWps", value: undefined },
    ],
    [
      "demand of a cluster that is not there",
      whole.replace("demandRps: { us-east", "demandRps: { us-west"),
      { code: "unknown_name", path: "demandRps.us-west", value: '"us-west"' },
    ],
    [
      "demand of a class that is not there",
      whole.replace("{ chat: 40 }", "{ talk: 90 }"),
      { code: "unknown_name", path: "demandRps.us-east.talk", value: '"talk"' },
    ],
    [
      "a kind that nobody knows",
      whole.replace("replicas: 4", "kind: abacus"),
      { code: "invalid_value", path: "engines.use1-a.kind", value: '"abacus"' },
    ],
    [
      "a URL with a password in it",
      whole.replace("http://10.1.0.4:8000/", "http://user:secret@10.1.0.4:8000/"),
      { code: "invalid_value", path: "engines.use1-a.url", value: '"http://***@10.1.0.4:8000/"' },
    ],
    [
      "two kinds of credentials",
      whole.replace("replicas: 4", "auth: { keyEnv: A, keyFile: b }"),
      { code: "invalid_value", path: "engines.use1-a.auth" },
    ],
    [
      "slots that are no power of two",
      `${whole}\npolicy: { slots: 1000 }\n`,
      { code: "invalid_value", path: "policy.slots", value: "1000" },
    ],
    ["no clusters", "engines: {}", { code: "missing_key", path: "clusters", value: undefined }],
    [
      "a file that can't be read",
      whole.replace("file: rtt.csv", "file: missing.csv"),
      { code: "unreadable_file", path: "network.file", value: '"missing.csv"' },
    ],
    ["a name of digits alone", whole.replace("{ chat: 40 }", "{ 40: 40 }"), { code: "invalid_value" }],
    ["a name with a space", whole.replace("  usw2-a:", '  "us w2":'), { code: "invalid_value", path: "engines.us w2" }],
    [
      "an anchor",
      whole.replace("{ region: us-east-1 }", "&a { region: us-east-1 }"),
      { code: "syntax", value: '"&a"' },
    ],
    ["text that is no YAML", "clusters: [", { code: "syntax" }],
  ];

  it.each(cases)("%s", async (_what, text, expected) => {
    expect(await problemOf(text)).toMatchObject(expected);
  });

  it("an alias, which comes with its anchor", async () => {
    const text = whole.replace("{ us-east: { region: us-east-1 } }", "{ us-east: &a { region: r }, us-west: *a }");
    const { problems } = await refused(text);
    expect(problems.map(({ code, value }) => [code, value])).toEqual([
      ["syntax", '"&a"'],
      ["syntax", '"*a"'],
    ]);
  });

  it("a key that is reserved, as not supported yet", async () => {
    const text = whole.replace("models: [llama-3.1-70b]", "models: [llama-3.1-70b]\n    replicasFrom: dns");
    expect(await problemOf(text)).toMatchObject({ code: "not_supported_yet", path: "engines.use1-a.replicasFrom" });
  });

  it("headers are trusted by default where clients need no key, and only there", async () => {
    const trust = async (gateway: string) => (await load(`${whole}\ngateway: ${gateway}\n`)).gateway.trustHeaders;
    expect(await trust("{}")).toBe(true);
    expect(await trust("{ clientKeys: { env: KEYS } }")).toBe(false);
    expect(await trust("{ clientKeys: { env: KEYS }, trustHeaders: true }")).toBe(true);
    expect(await trust("{ trustHeaders: false }")).toBe(false);
  });

  it.each([
    ["gateway: { clientKeys: {} }", "gateway.clientKeys"],
    ["gateway: { clientKeys: { env: A, file: b } }", "gateway.clientKeys"],
    ["gateway: { cors: { origins: [https://a.example/] } }", "gateway.cors.origins.0"],
    ["gateway: { cors: { origins: [a.example] } }", "gateway.cors.origins.0"],
  ])("%s is refused", async (line, path) => {
    expect(await problemOf(`${whole}\n${line}\n`)).toMatchObject({ path });
  });

  it("B137: every reserved key is refused as reserved, not as unknown", async () => {
    for (const pattern of NOT_SUPPORTED_YET) {
      const keys = pattern.split(".").map((key) => (key === "*" ? "use1-a" : key));
      const value = keys.reduceRight<unknown>((inner, key) => ({ [key]: inner }), 1);
      const { problems } = await refused(JSON.stringify(value));
      expect(
        problems.map(({ code, path }) => `${code} ${path}`),
        pattern,
      ).toEqual([`not_supported_yet ${keys.join(".")}`]);
    }
  });

  it("a profile file with a fault is refused under its own name", async () => {
    const text = whole.replace("profiles/h100.yaml", "bad.yaml");
    const error = await loadFleet(text, "fleet.yaml", async (path) =>
      path === "bad.yaml" ? profileText.replace("capacityWps: 12.5", "capacityWps: -1") : files[path]!,
    ).catch((reason: unknown) => reason as GuidevaneError);
    expect(error).toMatchObject({ code: "bad_profile", problems: [{ path: "capacityWps", value: "-1" }] });
  });

  it("its message has the file, each path and each value on a line", async () => {
    const text = whole.replace("replicas: 4", "replicaz: 4").replace("capacityWps: 9", "capacityWps: -9");
    const error = await refused(text);
    expect(error.code).toBe("bad_fleet");
    expect(error.message).toMatch(/^fleet\.yaml: 2 problems\n/);
    expect(error.message).toContain("engines.use1-a.replicaz: is not a key here (got 4)");
    expect(error.message).toContain("engines.usw2-a.capacityWps: ");
    expect(error.message).toContain("(got -9)");
  });

  it("says of each engine what keeps an unservable class from it", async () => {
    const text = whole.replace("priority: 10 }", "needs: { residency: [eu] } }");
    const { message } = await problemOf(text);
    expect(message).toBe(
      "no engine can serve this class — use1-a: residency unset is not in eu; usw2-a: residency unset is not in eu",
    );
  });
});

describe("the JSON Schema of the fleet file", () => {
  it("closes every object and asks for clusters only", () => {
    const schema = fleetJsonSchema() as { additionalProperties: boolean; required: string[] };
    expect(schema.additionalProperties).toBe(false);
    expect(schema.required).toEqual(["clusters"]);
  });
});
