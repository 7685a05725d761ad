import { bodies } from "./bodies.ts";
import type { BenchGroup } from "./case.ts";
import { crossing } from "./crossing.ts";
import type { LoadGroup } from "./load/group.ts";
import { observe } from "./observe.ts";
import { pick } from "./pick.ts";
import { request } from "./request.ts";
import { route } from "./route.ts";
import { solve } from "./solve.ts";
import { solver } from "./solver.ts";
import { stream } from "./stream.ts";
import { swap } from "./swap.ts";

export const groups: readonly BenchGroup[] = [bodies, crossing, pick, observe, route, solve, solver];
/** These load whole processes, and take minutes. */
export const loadGroups: readonly LoadGroup[] = [request, stream, swap];
