import type { Reporter, TestModule } from "vitest/node";

/**
 * Ends a run with one plain line, `N passed, N failed, N skipped`, for programs that count. A file that can't be loaded,
 * a hook that fails and an error outside any test each count as one failure, so that the line never looks better than
 * the exit code.
 */
export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const counts = countTests(modules);
    const failed = counts.failed + unhandledErrors.length;
    process.stdout.write(`${counts.passed} passed, ${failed} failed, ${counts.skipped} skipped\n`);
  }
}

export interface TestCounts {
  passed: number;
  failed: number;
  skipped: number;
}

function countTests(modules: readonly TestModule[]): TestCounts {
  const counts: TestCounts = { passed: 0, failed: 0, skipped: 0 };
  for (const module of modules) {
    counts.failed += module.errors().length;
    for (const suite of module.children.allSuites()) counts.failed += suite.errors().length;
    for (const test of module.children.allTests()) {
      const { state } = test.result();
      // "pending" after the end means that the run was broken off.
      if (state === "passed") counts.passed++;
      else if (state === "skipped") counts.skipped++;
      else counts.failed++;
    }
  }
  return counts;
}
