import type { Clock, Random } from "@guidevane/core";

const CLIENT_ID = /^[A-Za-z0-9._:-]{1,128}$/;

/** The client's own request id where it is a plain name, else a new UUIDv7. */
export function requestIdOf(sent: string | undefined, clock: Clock, random: Random): string {
  return sent !== undefined && CLIENT_ID.test(sent) ? sent : uuidv7(clock.wallMs(), random);
}

/** RFC 9562 §5.7: 48 bits of Unix milliseconds, then chance. */
function uuidv7(wallMs: number, random: Random): string {
  const time = Math.floor(wallMs).toString(16).padStart(12, "0");
  const a = bits(random, 12).toString(16).padStart(3, "0");
  const b = (0x8000 | bits(random, 14)).toString(16);
  const c = bits(random, 24).toString(16).padStart(6, "0") + bits(random, 24).toString(16).padStart(6, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${a}-${b}-${c}`;
}

function bits(random: Random, count: number): number {
  return Math.floor(random() * 2 ** count);
}
