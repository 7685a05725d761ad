import { describe, expect, it } from "vitest";
import { createResponseMemory, engineHash, ResponseMemory, responseKey } from "./response-memory.ts";

const key = (id: string, tenant = 0) => responseKey(Buffer.from(id), 0, id.length, tenant);
const A = engineHash("engine-a");
const B = engineHash("engine-b");

describe("the memory of responses", () => {
  it("knows which engine gave an answer, for its tenant alone", () => {
    const memory = new ResponseMemory(createResponseMemory());
    memory.remember(key("resp_1"), A, 10);
    memory.remember(key("resp_1", 7), B, 10);
    expect(memory.find(key("resp_1"), 20)).toBe(A);
    expect(memory.find(key("resp_1", 7), 20)).toBe(B);
    expect([memory.find(key("resp_1", 8), 20), memory.find(key("resp_2"), 20)]).toEqual([0, 0]);
    memory.remember(key("resp_1"), B, 30);
    expect(memory.find(key("resp_1"), 30)).toBe(B);
  });

  it("is one for all threads that are given its memory", () => {
    const shared = createResponseMemory(64);
    new ResponseMemory(shared).remember(key("resp_1"), A, 0);
    expect(new ResponseMemory(shared).find(key("resp_1"), 1)).toBe(A);
  });

  it("forgets what was not named for a day", () => {
    const memory = new ResponseMemory(createResponseMemory(64));
    memory.remember(key("resp_1"), A, 0);
    expect(memory.find(key("resp_1"), 80_000)).toBe(A);
    expect(memory.find(key("resp_1"), 160_000)).toBe(A);
    expect(memory.find(key("resp_1"), 160_000 + 86_401)).toBe(0);
  });

  it("lets the one unused for longest go, and no other", () => {
    const memory = new ResponseMemory(createResponseMemory(8));
    for (let i = 0; i < 8; i++) memory.remember(key(`resp_${i}`), A, i);
    expect(memory.find(key("resp_0"), 8)).toBe(A);
    memory.remember(key("resp_8"), B, 9);
    const known = Array.from({ length: 9 }, (_, i) => memory.find(key(`resp_${i}`), 9) !== 0);
    expect(known).toEqual([true, false, true, true, true, true, true, true, true]);
  });

  it("stays as large as it is, and confuses no two ids", () => {
    const shared = createResponseMemory(1024);
    const memory = new ResponseMemory(shared);
    for (let i = 0; i < 20_000; i++) memory.remember(key(`resp_${i}`), i % 2 === 0 ? A : B, i);
    let known = 0;
    for (let i = 0; i < 20_000; i++) {
      const engine = memory.find(key(`resp_${i}`), 20_000);
      if (engine === 0) continue;
      known += 1;
      expect(engine).toBe(i % 2 === 0 ? A : B);
    }
    expect(known).toBe(1024);
    expect(shared.byteLength).toBe(1024 * 16);
  });
});
