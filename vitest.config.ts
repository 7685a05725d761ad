import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const conditions = ["@guidevane/source"];

// For this process's children: those that run tests, and the programs that tests start (`test/src/warm-compile-cache.ts`).
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL("./node_modules/.cache/guidevane-compile", import.meta.url));

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: conditions } },
  test: {
    execArgv: ["--conditions=@guidevane/source"],
    // A busy machine with few cores is slow, not wrong; what must be quick is asserted in the test.
    // Vitest leaves one core to itself, which of two is half of them.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    globalSetup: fileURLToPath(new URL("./test/src/warm-compile-cache.ts", import.meta.url)),
    testTimeout: 30_000,
    hookTimeout: 60_000,
    projects: [
      {
        extends: true,
        test: {
          name: "packages",
          include: ["packages/*/src/**/*.test.ts", "native/src/**/*.test.ts"],
          sequence: { groupOrder: 0 },
        },
      },
      { extends: true, test: { name: "bench", include: ["bench/src/**/*.test.ts"], sequence: { groupOrder: 1 } } },
      {
        extends: true,
        // Whole programs, after the rest: each file brings processes of its own, which mostly wait for one another.
        test: {
          name: "whole",
          include: ["test/src/**/*.test.ts"],
          sequence: { groupOrder: 2 },
        },
      },
    ],
    reporters: ["default", "./test/src/closing-line.ts"],
  },
});
