import { IncomingMessage } from "node:http";

/** Takes a request's body piece by piece. */
export interface BodySink {
  onChunk(chunk: Buffer): void;
  onWhole(): void;
  /** The client left before its end. */
  onGone(): void;
}

/**
 * A request as node's parser hands it over. Its body may go to a sink in the stream's place: what node does for a stream
 * costs more than all else that is done to read a body. It knows when its client leaves, in a pipeline too.
 */
export class FrontRequest extends IncomingMessage {
  #sink: BodySink | null = null;
  /** The client's connection closed after the body and before the answer was out. Told once. */
  onGone: (() => void) | null = null;

  /** From now on what is read of the body goes there; with null to the stream, whose reader resumes it. */
  readInto(sink: BodySink | null): void {
    this.#sink = sink;
    // Else node would throw away what it takes for unread.
    if (sink !== null) this._read(0);
  }

  override push(chunk: Buffer | null): boolean {
    const sink = this.#sink;
    if (sink === null) return super.push(chunk);
    if (chunk !== null) sink.onChunk(chunk);
    else {
      // What it holds is not held for as long as the answer takes.
      this.#sink = null;
      sink.onWhole();
    }
    return true;
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    const { onGone } = this;
    const sink = this.#sink;
    this.onGone = null;
    this.#sink = null;
    sink?.onGone();
    onGone?.();
    super._destroy(error, callback);
  }
}
