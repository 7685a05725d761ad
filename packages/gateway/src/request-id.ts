import type { Clock, Random } from "@guidevane/core";

const CLIENT_ID = /^[A-Za-z0-9._:-]{1,128}$/;

/** The client's own request id where it is a plain name, else a new UUIDv7. */
export function requestIdOf(sent: string | undefined, clock: Clock, random: Random): string {
  return sent !== undefined && CLIENT_ID.test(sent) ? sent : uuidv7(clock.wallMs(), random);
}

/** RFC 9562 §5.7: 48 bits of Unix milliseconds, then chance. */
function uuidv7(wallMs: number, random: Random): string {
  const high = Math.floor(wallMs / 2 ** 24);
  const low = Math.floor(wallMs) % 2 ** 24;
  const a = bits26(random);
  const b = bits24(random);
  const c = bits24(random);
  return (
    `${hex24(high)}${HEX[low >>> 16]}-${HEX[(low >>> 8) & 0xff]}${HEX[low & 0xff]}` +
    `-${HEX[0x70 | ((a >>> 22) & 0xf)]}${HEX[(a >>> 14) & 0xff]}` +
    `-${HEX[0x80 | ((a >>> 8) & 0x3f)]}${HEX[a & 0xff]}-${hex24(b)}${hex24(c)}`
  );
}

/** Two digits of each byte. */
const HEX: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

function hex24(value: number): string {
  return `${HEX[(value >>> 16) & 0xff]}${HEX[(value >>> 8) & 0xff]}${HEX[value & 0xff]}`;
}

function bits24(random: Random): number {
  return Math.floor(random() * 2 ** 24);
}

function bits26(random: Random): number {
  return Math.floor(random() * 2 ** 26);
}
