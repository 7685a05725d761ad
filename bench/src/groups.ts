import type { BenchGroup } from "./case.ts";
import { crossing } from "./crossing.ts";

export const groups: readonly BenchGroup[] = [crossing];
