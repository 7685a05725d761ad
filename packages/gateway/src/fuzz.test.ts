import { expect, it } from "vitest";
import { fuzzGateway } from "./testing/fuzz/fuzz-gateway.ts";

/** One round; `npm run fuzz -- SECONDS` goes on, and so does this with `GUIDEVANE_FUZZ_SECONDS`. */
const seconds = Number(process.env.GUIDEVANE_FUZZ_SECONDS ?? 0);

it(
  "changed requests and changed answers break nothing",
  async () => {
    const endsMs = performance.now() + seconds * 1000;
    const report = await fuzzGateway({ seed: 1, connections: 150, goOn: () => performance.now() < endsMs });
    expect(report.complaints).toEqual([]);
    // Most of the changed requests are refused; of the others each is one.
    expect(report.requests).toBeGreaterThan(report.connections / 2);
  },
  (seconds + 60) * 1000,
);
