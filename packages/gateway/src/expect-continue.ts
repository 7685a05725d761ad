import type { IncomingMessage, ServerResponse } from "node:http";

/** `Expect: 100-continue`: a client that holds its body back until it is wanted (RFC 9110 §10.1.1). */

/** An answer to such a client, with the mark that node has on it. */
interface ExpectedResponse extends ServerResponse {
  /** While it stands, an answer without a 100 before it closes the connection. */
  _expect_continue?: boolean;
}

/** A client of HTTP/1.0 has no expectations. */
function holdsBody({ headers, httpVersionMinor }: IncomingMessage): boolean {
  return headers.expect !== undefined && httpVersionMinor > 0;
}

/** Whether the client holds its body back until the answers before its own in the pipeline are out: `response` gets a socket. */
export function waitsForTurn(request: IncomingMessage, response: ServerResponse): boolean {
  return holdsBody(request) && response.socket === null;
}

/**
 * Says to a client that waits for it that its body is wanted. In a pipeline only when its turn has come and the body has
 * not: node would put the word into the middle of the answer.
 */
export function askForBody(request: IncomingMessage, response: ServerResponse): void {
  if (!holdsBody(request)) return;
  const ask = (): void => {
    if (!response.headersSent && !request.complete) response.writeContinue();
  };
  if (response.socket === null) response.once("socket", ask);
  else ask();
}

/**
 * The whole body came. Where it was not asked for, node would close after the answer, since a client that was not told to
 * go on may send its body or not; this one did, so the next request begins where its body ends.
 */
export function bodyCame(request: IncomingMessage, response: ServerResponse): void {
  if (holdsBody(request)) (response as ExpectedResponse)._expect_continue = false;
}
