/**
 * The gateway's way to one engine: requests out, answers in pieces, no retries and no timers but the one for connecting.
 * An interface of our own, so that another client can take undici's place.
 */
export interface EngineClient {
  /** Sends one request. `onSent` and `onFail` may be called before this returns. */
  send(request: EngineRequest, events: EngineEvents): EngineCall;
  /** Closes idle connections and, once their answers are over, the others. */
  close(): void;
}

/**
 * Connections older than this carry no further request, so that an engine whose name leads elsewhere by now is found there
 * under steady traffic too. A connection a minute is no cost.
 */
export const CONNECTION_MAX_AGE_MS = 60_000;

export interface EngineRequest {
  readonly method: "GET" | "POST";
  /** Path and query as they go on the request line. */
  readonly path: string;
  /** Names and values in turn, without framing and host. */
  readonly headers: readonly string[];
  readonly body: Uint8Array | null;
  /** Use no connection that has served before. */
  readonly fresh: boolean;
}

/** What happens to one request. Ends with exactly one of `onEnd` and `onFail`, unless aborted: then nothing more comes. */
export interface EngineEvents {
  /** The request is on a connection; `connectMs` is null on one that was already there. */
  onSent(connectMs: number | null): void;
  /** The final head; 1xx answers are dropped. `headers`: names and values in turn, as sent. */
  onHead(status: number, statusText: string, headers: readonly string[]): void;
  /** @param chunk is read into again once this turn and its ticks are over: who keeps it longer copies it */
  onData(chunk: Buffer): void;
  onEnd(): void;
  onFail(failure: EngineFailure): void;
}

export interface EngineCall {
  /** Asks for no more bytes; those already read may still come. */
  pause(): void;
  resume(): void;
  /** Closes the connection, in whatever phase it is. */
  abort(): void;
}

export interface EngineFailure {
  readonly kind: /** The port is closed. */
    | "refused"
    /** No connection for another reason: unreachable, timed out, name not found. */
    | "unreachable"
    | "tls"
    /** A connection that had served before died without a byte. */
    | "stale-connection"
    /** Reset or closed before the answer was whole. */
    | "closed"
    /** What came is not HTTP/1.1, or not as long as it said. */
    | "malformed"
    /** The gateway itself may open no more connections: not the engine's fault. */
    | "no-descriptors";
  readonly message: string;
}
