import { z } from "zod";

/** What a test or a demonstration can make an emulated engine do. */
export interface Controls {
  /** Status of `/health`. */
  readonly health: number;
  /** 0 = nothing is served, `/health` says 503. */
  readonly readyReplicas: number;
  /** Every step takes this many times as long; capacity falls by the same. */
  readonly slowdown: number;
  /** Status of each new completion or embedding; 200 = they are answered. */
  readonly answerStatus: number;
  /** Sent with refusals of 429 and above. */
  readonly retryAfterS: number | null;
  /** Streams are cut, without an end, after this many tokens. */
  readonly breakAfterTokens: number | null;
  /** New requests are taken and never answered. */
  readonly hang: boolean;
}

export const UNTOUCHED: Controls = {
  health: 200,
  readyReplicas: 1,
  slowdown: 1,
  answerStatus: 200,
  retryAfterS: null,
  breakAfterTokens: null,
  hang: false,
};

/** The body of `POST /emulator`: a change, or what is wrong with it. */
export function readControls(json: string): Partial<Controls> | string {
  let data: unknown;
  try {
    data = JSON.parse(json);
  } catch {
    return "is not JSON";
  }
  const parsed = controlsSchema.safeParse(data);
  if (parsed.success) return parsed.data as Partial<Controls>;
  const { path, message } = parsed.error.issues[0]!;
  return `${path.join(".")}: ${message}`;
}

const status = z.int().min(200).max(599);

const controlsSchema = z.strictObject({
  health: status.optional(),
  readyReplicas: z.int().nonnegative().optional(),
  slowdown: z.number().positive().finite().optional(),
  answerStatus: status.optional(),
  retryAfterS: z.int().nonnegative().nullable().optional(),
  breakAfterTokens: z.int().nonnegative().nullable().optional(),
  hang: z.boolean().optional(),
});
