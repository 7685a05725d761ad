import type { EmulatedKind } from "./kind.ts";
import { llamacpp } from "./llamacpp.ts";
import { sglang } from "./sglang.ts";
import { tgi } from "./tgi.ts";
import { triton } from "./triton.ts";
import { trtllm } from "./trtllm.ts";
import { vllm } from "./vllm.ts";

/** The kinds of engines that can be emulated, by their names in the fleet file. */
export const EMULATED_KINDS = { vllm, sglang, tgi, trtllm, triton, llamacpp } as const satisfies Readonly<
  Record<string, EmulatedKind>
>;
export type EmulatedKindName = keyof typeof EMULATED_KINDS;
