import { seededRandom } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { randomBody } from "./body.fixture.ts";
import { FACT, FACT_WORDS } from "./facts.ts";
import { compareWithParse, shownBody } from "./meaning.fixture.ts";
import { ROUTE_STATUS } from "./router.ts";
import { scan } from "./scan.ts";
import { canonicalBody } from "./unusual.ts";

const facts = new Uint32Array(FACT_WORDS);

function scanText(body: string): boolean {
  return scan(Buffer.from(body), facts);
}

describe("scan", () => {
  it("agrees with JSON.parse on 10,000 bodies, plain, odd and broken", () => {
    const random = seededRandom(20260101);
    const seen = { plain: 0, unusual: 0, refused: 0, tooDeep: 0 };
    for (let round = 0; round < 10_000; round++) {
      const body = randomBody(random);
      const found = compareWithParse(body);
      if (found.wrong !== undefined) expect.fail(`round ${round}: ${found.wrong}: ${shownBody(body.bytes)}`);
      seen[found.kind]++;
    }
    // So that the test can't pass by never meeting one of them.
    expect(seen.plain).toBeGreaterThan(2500);
    expect(seen.unusual).toBeGreaterThan(1000);
    expect(seen.refused).toBeGreaterThan(1000);
    expect(seen.tooDeep).toBeGreaterThan(10);
  });

  it.each([
    ["a name that stands twice", '{"model":"a","model":"b"}'],
    ["an escaped name", '{"mod\\u0065l":"a"}'],
    ["an escape in the model", '{"model":"a\\/b"}'],
    ["a byte order mark", '\ufeff{"model":"a"}'],
    ["garbage after the object", '{"model":"a"}}'],
    ["a role that stands twice", '{"messages":[{"role":"user","role":"system"}]}'],
    ["nesting beyond the bound", `{"a":${"[".repeat(513)}1${"]".repeat(513)}}`],
    ["a token count beyond nine digits", '{"max_tokens":1234567890}'],
  ])("leaves %s to JSON.parse", (_, body) => {
    expect(scanText(body)).toBe(false);
  });

  it.each([
    ["a name twice that says nothing to routing", '{"model":"a","x":1,"x":2}'],
    ["escapes in prompts", '{"messages":[{"role":"user","content":"a\\"b\\u0041\\n"}]}'],
    ["nesting up to the bound", `{"a":${"[".repeat(512)}1${"]".repeat(512)}}`],
    ["indentation", '{\n\t"model" : "a",\r\n "stream": true }\n'],
  ])("reads %s itself", (_, body) => {
    expect(scanText(body)).toBe(true);
  });

  it.each([
    ["a control character in a string", '{"a":"x\ny"}'],
    ["an unknown escape", '{"a":"\\x"}'],
    ["a short \\u", '{"a":"\\u12G4"}'],
    ["a leading zero", '{"a":01}'],
    ["a bare minus", '{"a":-}'],
    ["a point without digits", '{"a":1.}'],
    ["an exponent without digits", '{"a":1e+}'],
    ["a trailing comma", '{"a":1,}'],
    ["a trailing comma in a list", '{"a":[1,]}'],
    ["brackets that don't match", '{"a":[1}}'],
    ["a missing colon", '{"a" 1}'],
    ["a name without quotes", "{a:1}"],
    ["single quotes", "{'a':1}"],
    ["a literal in capitals", '{"a":True}'],
    ["NaN", '{"a":NaN}'],
    ["a comment", '{"a":1/**/}'],
    ["a no-break space", '{"a":\u00a01}'],
    ["an end in the middle of a string", '{"a":"x'],
    ["an end after a backslash", '{"a":"x\\'],
    ["an end after a colon", '{"a":'],
  ])("takes %s for no JSON, alone and in a long string's company", (_, body) => {
    expect(scanText(body)).toBe(false);
    expect(canonicalBody(Buffer.from(body))).toBe(ROUTE_STATUS.notJson);
    const long = body.replace("{", `{"long":"${"text ".repeat(50)}",`);
    expect(scanText(long)).toBe(false);
  });

  it("takes bytes that are not UTF-8 as they come inside strings, as a decoder would, and nowhere else", () => {
    expect(scan(Buffer.from('{"a":"\xff\xc0"}', "latin1"), facts)).toBe(true);
    expect(scan(Buffer.from('{"a":\xff}', "latin1"), facts)).toBe(false);
  });

  it("finds a control character anywhere in a long body, at any offset of memory", () => {
    const memory = new Uint8Array(140_100);
    const prefix = '{"a":"';
    for (const length of [64, 65_530, 65_540, 131_080, 140_000]) {
      for (const offset of [0, 1, 2, 3]) {
        const body = memory.subarray(offset, offset + length);
        body.fill(0x61);
        body.set(Buffer.from(prefix));
        body.set(Buffer.from('"}'), length - 2);
        expect(scan(body, facts)).toBe(true);
        for (const at of [prefix.length, 40, length >> 1, length - 5, length - 3]) {
          body[at] = 0x1f;
          expect(scan(body, facts)).toBe(false);
          body[at] = 0x61;
        }
      }
    }
  });

  it("steps over a string of escapes in time that grows with its length, not with its square", () => {
    const steps = (count: number) => {
      const body = Buffer.from(`{"a":"${"\\n".repeat(count)}"}`);
      const started = performance.now();
      expect(scan(body, facts)).toBe(true);
      return performance.now() - started;
    };
    steps(200_000);
    // 2 MB took the square of a second when every escape looked for the end again; linear is some tens of ms.
    expect(steps(1_000_000)).toBeLessThan(2000);
  });

  it("counts the bytes of images and audio apart from text", () => {
    const image = `{"type":"image_url","image_url":{"url":"data:${"A".repeat(5000)}"}}`;
    expect(scanText(`{"messages":[{"role":"user","content":[{"type":"text","text":"hi"},${image}]}]}`)).toBe(true);
    expect(facts[FACT.mediaBytes]).toBe(image.length);
  });
});

describe("canonicalBody", () => {
  it("lets the last of two equal names win", () => {
    expect(Buffer.from(canonicalBody(Buffer.from('{"model":"a","model":"b"}')) as Uint8Array).toString()).toBe(
      '{"model":"b"}',
    );
  });

  it("refuses a body beyond 1 MiB, and one that is no object", () => {
    expect(canonicalBody(Buffer.alloc(1_048_577, 0x20))).toBe(ROUTE_STATUS.tooUnusual);
    for (const body of ["[]", "null", "1", '"{}"', ""])
      expect(canonicalBody(Buffer.from(body))).toBe(ROUTE_STATUS.notJson);
  });

  it("refuses nesting that overflows the stack, without throwing", () => {
    const body = Buffer.from(`{"a":${"[".repeat(400_000)}${"]".repeat(400_000)}}`);
    expect(canonicalBody(body)).toBe(ROUTE_STATUS.tooUnusual);
  });
});
