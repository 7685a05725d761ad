import { expect, it } from "vitest";
import { ConditionLog } from "./log.ts";
import { TestLogger } from "./testing/parts.ts";

it("B121: logs a condition when it begins, changes and ends, and not while it lasts", () => {
  const logger = new TestLogger();
  const conditions = new ConditionLog(logger);
  conditions.ends("tick", "well");
  conditions.begins("tick", "deadline", "late 1");
  conditions.begins("tick", "deadline", "late 2");
  conditions.begins("store", "full", "full");
  conditions.begins("tick", "crashed", "crashed");
  conditions.ends("tick", "well");
  conditions.ends("tick", "well");
  expect(logger.lines.map(({ level, message }) => `${level} ${message}`)).toEqual([
    "warn late 1",
    "warn full",
    "warn crashed",
    "info well",
  ]);
});
