//! The key of a request. The twin of `packages/selector/src/key.ts`.

use crate::draw::keyless_hash;
use crate::scan::{Facts, Span};
use crate::seam::{KeySource, head, path};
use crate::xxh32::xxh32;

/// Bytes of a chat's system part, and again of its first user message, that are its key.
const CHAT_KEY_BYTES: usize = 4096;
/// Bytes of a raw prompt, an embedding's input, a query or tokens that are its key.
const PROMPT_KEY_BYTES: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    pub source: KeySource,
    /// The same bytes with two seeds: the first gives the slot, the second every later draw.
    pub hash: u32,
    pub hash2: u32,
}

/// First found: session header, `prompt_cache_key`, `previous_response_id` where the engine that has it is known,
/// `conversation`, `metadata.session_id`, the prompt. A tenant's hash is the seed, so that one key of two tenants is two.
///
/// The prompt of a conversation is the raw value of `system` or `instructions`, then the raw content of the system and
/// developer messages that stand before the first user message, and of that one: it stays as turns are appended, and
/// conversations that share a system prompt, however long, spread. The pieces are hashed in a chain, each hash the seed
/// of the next, so that nothing is copied.
///
/// `count` differs from call to call; it spreads requests without a key.
pub fn find_key(head_words: &[u32; head::WORDS], head_bytes: &[u8], body: &[u8], facts: &Facts, count: u32) -> Key {
    let seed = head_words[head::TENANT];
    let start = Chain { hash: seed, hash2: seed.wrapping_add(1) };
    let header = &head_bytes[..head_bytes.len().min(head_words[head::SESSION_KEY_BYTES] as usize)];
    if !header.is_empty() {
        return start.then(header).key(KeySource::Header);
    }
    let previous = if head_words[head::FOLLOWED] > 0 { facts.previous } else { Span::default() };
    for (span, source) in [
        (facts.cache_key, KeySource::PromptCacheKey),
        (previous, KeySource::PreviousResponseId),
        (facts.conversation, KeySource::Conversation),
        (facts.session, KeySource::SessionId),
    ] {
        if !span.is_empty() {
            return start.then(&body[span.start..span.end]).key(source);
        }
    }
    let path = head_words[head::PATH];
    let raw = match path {
        path::COMPLETIONS | path::TOKENIZE => facts.prompt,
        path::EMBEDDINGS => facts.input,
        path::RERANK | path::SCORE => facts.query,
        path::DETOKENIZE => facts.tokens,
        _ => Span::default(),
    };
    let prompt = raw_chain(start, body, raw).or_else(|| conversation_chain(start, path, body, facts));
    match prompt {
        Some(chain) => chain.key(KeySource::Prompt),
        None => Key {
            source: KeySource::None,
            hash: keyless_hash(count, start.hash),
            hash2: keyless_hash(count, start.hash2),
        },
    }
}

#[derive(Clone, Copy)]
struct Chain {
    hash: u32,
    hash2: u32,
}

impl Chain {
    fn then(self, bytes: &[u8]) -> Self {
        Self { hash: xxh32(bytes, self.hash), hash2: xxh32(bytes, self.hash2) }
    }

    fn key(self, source: KeySource) -> Key {
        Key { source, hash: self.hash, hash2: self.hash2 }
    }
}

fn raw_chain(start: Chain, body: &[u8], span: Span) -> Option<Chain> {
    let end = span.end.min(span.start + PROMPT_KEY_BYTES);
    (end > span.start).then(|| start.then(&body[span.start..end]))
}

/// `None` where there is nothing to make a key of.
fn conversation_chain(start: Chain, path: u32, body: &[u8], facts: &Facts) -> Option<Chain> {
    let mut chain = start;
    let mut left = CHAT_KEY_BYTES;
    let has_system = matches!(path, path::MESSAGES | path::COUNT_TOKENS | path::RESPONSES);
    let system = if has_system { facts.system } else { Span::default() };
    for span in std::iter::once(&system).chain(&facts.pieces[..facts.piece_count]) {
        let end = span.end.min(span.start + left);
        if end > span.start {
            chain = chain.then(&body[span.start..end]);
            left -= end - span.start;
        }
    }
    // A responses' input that is one text is the user's; a list that has no message of theirs is told by its beginning.
    let last = if path == path::RESPONSES && facts.user.is_empty() { facts.input } else { facts.user };
    let end = last.end.min(last.start + CHAT_KEY_BYTES);
    if end > last.start {
        chain = chain.then(&body[last.start..end]);
    } else if left == CHAT_KEY_BYTES {
        return None;
    }
    Some(chain)
}
