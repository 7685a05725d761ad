import type { EngineRequest } from "./engine-client.ts";

/** A request up to this size goes out in one piece with its head; copying more costs more than a second write. */
const ONE_WRITE_MAX_BYTES = 32_768;

/** Head and body as they go out: in one piece where the body is small. */
export function requestBytes({ method, path, headers, body }: EngineRequest, host: string): Uint8Array[] {
  let head = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\n`;
  for (let i = 0; i + 1 < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`;
  if (body === null) return [Buffer.from(`${head}\r\n`, "latin1")];
  head += `content-length: ${body.length}\r\n\r\n`;
  if (body.length > ONE_WRITE_MAX_BYTES) return [Buffer.from(head, "latin1"), body];
  const bytes = Buffer.allocUnsafe(head.length + body.length);
  bytes.write(head, 0, "latin1");
  bytes.set(body, head.length);
  return [bytes];
}
