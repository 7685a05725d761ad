import type { PolicyDefinition } from "../policy.ts";
import { boundedLoad } from "./bounded-load.ts";
import { capacityProportional } from "./capacity-proportional.ts";
import { controller } from "./controller.ts";
import { equalLatency } from "./equal-latency.ts";
import { greedyNetwork } from "./greedy-network.ts";
import { guidevane } from "./guidevane.ts";
import { hashOnly } from "./hash-only.ts";
import { leastInFlight } from "./least-in-flight.ts";
import { nearestOnly } from "./nearest-only.ts";
import { powerOfTwo } from "./power-of-two.ts";
import { prefixAffinity } from "./prefix-affinity.ts";
import { random } from "./random.ts";
import { roundRobin } from "./round-robin.ts";
import { staticRing } from "./static-ring.ts";
import { waterfall } from "./waterfall.ts";

/** Every policy of the lab, by the names that `guidevane simulate --policy` takes. */
export const POLICIES: readonly PolicyDefinition[] = [
  guidevane,
  roundRobin,
  random,
  nearestOnly,
  leastInFlight,
  powerOfTwo,
  waterfall,
  capacityProportional,
  equalLatency,
  staticRing,
  prefixAffinity,
  greedyNetwork,
  hashOnly,
  boundedLoad,
  controller,
];
