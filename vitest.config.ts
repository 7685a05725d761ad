import { defineConfig } from "vitest/config";

const conditions = ["@guidevane/source"];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: conditions } },
  test: {
    execArgv: ["--conditions=@guidevane/source"],
    projects: [
      {
        extends: true,
        test: { name: "packages", include: ["packages/*/src/**/*.test.ts", "native/src/**/*.test.ts"] },
      },
      { extends: true, test: { name: "bench", include: ["bench/src/**/*.test.ts"] } },
      {
        extends: true,
        test: { name: "whole", include: ["test/src/**/*.test.ts"], testTimeout: 30_000, hookTimeout: 60_000 },
      },
    ],
    reporters: ["default", "./test/src/closing-line.ts"],
  },
});
