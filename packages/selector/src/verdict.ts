import { REASONS, type Reason } from "./router.ts";

/** What speaks against a candidate, the least first. */
export const VERDICT = { take: 0, over: 1, penalised: 2, cooling: 3, probe: 4, out: 5, never: 6 } as const;
/** Those with which it may still be the taker. */
export const VERDICTS: number = VERDICT.out;

const place = (reason: Reason): number => REASONS.indexOf(reason);

/** Places in `REASONS`. */
export const REASON = {
  home: place("home"),
  second: place("second"),
  followed: place("followed"),
  bounded: place("bounded"),
  penalised: place("penalised"),
  ejected: place("ejected"),
  cooled: place("cooled"),
  reserve: place("reserve"),
  retry: place("retry"),
  failOpen: place("fail-open"),
  bootstrap: place("bootstrap"),
} as const;

/** Why another than home took it, by home's verdict. Home unable to serve this body is no fault: the next one is `second`. */
export const REASON_BY_VERDICT: Uint8Array = Uint8Array.of(
  REASON.home,
  REASON.bounded,
  REASON.penalised,
  REASON.cooled,
  REASON.ejected,
  REASON.ejected,
  REASON.second,
);
