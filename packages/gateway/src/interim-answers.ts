import type { Socket } from "node:net";

/** The status line of what is dropped; the protocol's minor version is the engine's. */
const CONTINUE = /^HTTP\/1\.[01] 100[ \r]/;
const CONTINUE_LINE = "HTTP/1.1 100 ";
/** Longer than any head of an interim answer that says nothing. */
const HELD_MAX_BYTES = 1024;

/**
 * Takes `100 Continue` out of what is read from an engine while the head of an answer is awaited. It was not asked for and
 * says nothing, but engines may send it (RFC 9110 §15.2), and undici would break the connection off.
 *
 * @param max more of them than this in a row are left in
 */
export function dropContinues(socket: Socket, awaitsHead: () => boolean, max: number): void {
  const read = socket.read.bind(socket);
  let held: Buffer | null = null;
  let dropped = 0;
  socket.read = (size?: number): Buffer | null => {
    for (;;) {
      const more = read(size) as Buffer | null;
      if (more === null) return null;
      let bytes: Buffer = held === null ? more : Buffer.concat([held, more]);
      held = null;
      if (!awaitsHead()) {
        dropped = 0;
        return bytes;
      }
      for (let end = endOfContinue(bytes); end > 0 && dropped < max; end = endOfContinue(bytes)) {
        bytes = bytes.subarray(end);
        dropped += 1;
      }
      if (bytes.length > 0 && !(dropped < max && mayBecomeContinue(bytes))) return bytes;
      held = bytes.length === 0 ? null : bytes;
    }
  };
}

/** Place after a whole `100 Continue` that the bytes begin with; 0 = they don't. */
function endOfContinue(bytes: Buffer): number {
  if (!CONTINUE.test(bytes.toString("latin1", 0, CONTINUE_LINE.length))) return 0;
  const end = bytes.indexOf("\r\n\r\n");
  return end < 0 ? 0 : end + 4;
}

function mayBecomeContinue(bytes: Buffer): boolean {
  if (bytes.length > HELD_MAX_BYTES) return false;
  const line = bytes.toString("latin1", 0, CONTINUE_LINE.length);
  return bytes.length < CONTINUE_LINE.length ? CONTINUE_LINE.startsWith(line) : CONTINUE.test(line);
}
