/** Enough of a stream's end to find its terminator in, wherever the chunks were cut. */
const TAIL_BYTES = 64;

const DONE = Buffer.from("data: [DONE]");
const DONE_TIGHT = Buffer.from("data:[DONE]");
const ERROR = Buffer.from('data: {"error":');
const ERROR_TIGHT = Buffer.from('data:{"error":');
const FINISH = Buffer.from('"finish_reason":');
const NULL = Buffer.from("null");

/**
 * Looks beside an event stream, never at what is passed on: did it say that it was over? A stream is whole after
 * `[DONE]`, or after a finish reason where the server sends no `[DONE]`; never after an error event, which vLLM follows
 * with `[DONE]` as well.
 */
export class StreamTail {
  #tail: Buffer = Buffer.alloc(0);
  #finished = false;
  #failed = false;

  see(chunk: Buffer): void {
    // A field that was cut between two chunks stands in the joint.
    const joint = Buffer.concat([this.#tail, chunk.subarray(0, TAIL_BYTES)]);
    this.#finished ||= saysFinished(joint) || saysFinished(chunk);
    this.#failed ||= saysError(joint) || saysError(chunk);
    this.#tail = chunk.length >= TAIL_BYTES ? chunk.subarray(chunk.length - TAIL_BYTES) : lastOf(joint);
  }

  /** Whether an error event was among it. */
  get failed(): boolean {
    return this.#failed;
  }

  get terminated(): boolean {
    return this.#finished || this.#tail.includes(DONE) || this.#tail.includes(DONE_TIGHT);
  }

  /** Whether what was seen ends between two events, so that another one may follow. */
  get betweenEvents(): boolean {
    const text = this.#tail.toString("latin1");
    return text === "" || text.endsWith("\n\n") || text.endsWith("\r\n\r\n");
  }
}

function lastOf(bytes: Buffer): Buffer {
  return bytes.length > TAIL_BYTES ? bytes.subarray(bytes.length - TAIL_BYTES) : bytes;
}

/** An error event stands at the start of a line; the same text inside a string of JSON has a backslash before its quote. */
function saysError(bytes: Buffer): boolean {
  return hasValue(bytes, ERROR) || hasValue(bytes, ERROR_TIGHT);
}

function saysFinished(bytes: Buffer): boolean {
  return hasValue(bytes, FINISH);
}

/** Whether `field` is followed by something other than `null`. A value that is cut off is seen again in the next joint. */
function hasValue(bytes: Buffer, field: Buffer): boolean {
  for (let at = bytes.indexOf(field); at >= 0; at = bytes.indexOf(field, at + 1)) {
    let value = at + field.length;
    while (bytes[value] === 0x20) value += 1;
    if (value + NULL.length <= bytes.length && !bytes.subarray(value, value + NULL.length).equals(NULL)) return true;
  }
  return false;
}
