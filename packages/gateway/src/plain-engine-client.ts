import { connect as connectTcp, type Socket, type TcpNetConnectOpts } from "node:net";
import type { Clock } from "@guidevane/core";
import type { EngineCall, EngineClient, EngineEvents, EngineRequest } from "./engine-client.ts";
import { PlainConnection } from "./plain-connection.ts";
import { requestBytes } from "./request-bytes.ts";

export interface PlainClientOptions {
  /** An `http:` origin. */
  readonly origin: string;
  readonly connectMs: number;
  readonly clock: Clock;
  /** Opens a connection; left out = node's. A test puts its own in. */
  readonly connect?: (at: TcpNetConnectOpts) => Socket;
}

/** Idle connections are closed before most servers close theirs: vLLM's after 5 s. */
const IDLE_MS = 4000;

/**
 * An engine's plain HTTP/1.1 connections on bare sockets: one request at a time on each, the last one used taken first. It
 * spends about half as much on a piece of an answer as undici's client, which stays for TLS.
 */
export class PlainEngineClient implements EngineClient {
  readonly #options: PlainClientOptions;
  readonly #host: string;
  readonly #at: { readonly host: string; readonly port: number };
  readonly #idle: PlainConnection[] = [];
  #stopSweep: (() => void) | null = null;
  #closed = false;

  constructor(options: PlainClientOptions) {
    const { host, hostname, port } = new URL(options.origin);
    this.#options = options;
    this.#host = host;
    this.#at = { host: hostname.replace(/^\[|\]$/g, ""), port: port === "" ? 80 : Number(port) };
  }

  send(request: EngineRequest, events: EngineEvents): EngineCall {
    const connection = (request.fresh ? null : this.#takeIdle()) ?? this.#open();
    return connection.send(requestBytes(request, this.#host), events);
  }

  close(): void {
    this.#closed = true;
    this.#stopSweep?.();
    for (const connection of this.#idle.splice(0)) connection.destroy();
  }

  #takeIdle(): PlainConnection | null {
    for (;;) {
      const connection = this.#idle.pop();
      if (connection === undefined) return null;
      if (connection.usable) return connection;
      connection.destroy();
    }
  }

  #open(): PlainConnection {
    const { clock, connectMs, connect = connectTcp } = this.#options;
    return new PlainConnection({ at: this.#at, connect, clock, connectMs }, (connection, reusable) => {
      const at = this.#idle.indexOf(connection);
      if (at >= 0) this.#idle.splice(at, 1);
      if (!reusable || this.#closed || !connection.drained) connection.destroy();
      else this.#keep(connection);
    });
  }

  #keep(connection: PlainConnection): void {
    connection.idleSinceMs = this.#options.clock.nowMs();
    this.#idle.push(connection);
    this.#stopSweep ??= this.#options.clock.after(IDLE_MS, () => this.#sweep());
  }

  /** Closes what has been idle too long; those idle longest stand first. */
  #sweep(): void {
    const { clock } = this.#options;
    this.#stopSweep = null;
    const nowMs = clock.nowMs();
    while (this.#idle.length > 0 && nowMs - this.#idle[0]!.idleSinceMs >= IDLE_MS) this.#idle.shift()!.destroy();
    const oldest = this.#idle[0];
    if (oldest !== undefined)
      this.#stopSweep = clock.after(IDLE_MS - (nowMs - oldest.idleSinceMs), () => this.#sweep());
  }
}
