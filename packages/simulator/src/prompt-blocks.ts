/** The prefix blocks of a prompt and of its answer, for `PrefixCache`. */
export interface PromptBlocks {
  /** Equal ids stand for equal text and equal text before it: a chain of hashes, as engines make it. */
  readonly ids: Int32Array;
  /** So many of them are of the prompt alone. */
  readonly promptBlocks: number;
}

export const NO_BLOCKS: PromptBlocks = { ids: new Int32Array(0), promptBlocks: 0 };

/**
 * Cuts a prompt and what is answered into whole blocks of `blockBytes`.
 *
 * @param after what a client sends again after the prompt when it goes on with the conversation
 */
export function promptBlocksOf(prompt: string, after: string, blockBytes: number): PromptBlocks {
  const bytes = Buffer.from(prompt + after);
  const ids = new Int32Array(Math.floor(bytes.length / blockBytes));
  let hash = 0x811c_9dc5;
  for (let block = 0; block < ids.length; block++) {
    const end = (block + 1) * blockBytes;
    for (let at = block * blockBytes; at < end; at += 4) hash = mixIn(hash, bytes.readInt32LE(at));
    // Ids are whole numbers of 0 or more, and the greatest would not fit once it is stored plus one.
    ids[block] = Math.min((hash ^ (hash >>> 15)) & 0x7fff_ffff, 0x7fff_fffd);
  }
  return { ids, promptBlocks: Math.floor(Buffer.byteLength(prompt) / blockBytes) };
}

/** A step of MurmurHash3. */
function mixIn(hash: number, word: number): number {
  let mixed = Math.imul(word, 0xcc9e_2d51);
  mixed = Math.imul((mixed << 15) | (mixed >>> 17), 0x1b87_3593);
  const next = hash ^ mixed;
  return (Math.imul((next << 13) | (next >>> 19), 5) + 0xe654_6b64) | 0;
}
