//! One request: scan, key, class, pick. The twin of `packages/selector/src/ts-router.ts`.

use crate::bound::LiveParts;
use crate::classify::classify;
use crate::key::find_key;
use crate::names::uses;
use crate::pick::{Request, pick};
use crate::scan::{Facts, scan};
use crate::seam::{KeySource, NONE, Status, head, out, path};
use crate::state::SharedState;
use crate::table::Table;

/// What one thread's router needs beside the table: room for what a call finds, so that a call allocates nothing.
#[derive(Debug)]
pub struct Scratch {
    live_parts: Box<[LiveParts]>,
    count: u32,
}

impl Scratch {
    pub fn for_table(table: &Table) -> Self {
        Self { live_parts: vec![LiveParts::default(); table.cells.len()].into(), count: 0 }
    }
}

/// Decides one request and writes what was found to `found`. On [`Status::AskTwin`] `found` has the number of this call in
/// the place of the key's hash and nothing else.
pub fn route(
    table: &Table,
    shared: SharedState,
    scratch: &mut Scratch,
    head_words: &[u32; head::WORDS],
    head_bytes: &[u8],
    body: &[u8],
    found: &mut [u32; out::WORDS],
) -> Status {
    // Every call counts, with a key or without, so that twins that see the same calls count alike.
    scratch.count = scratch.count.wrapping_add(1);
    let plain = if u32::try_from(body.len()).is_ok() { scan(body) } else { None };
    let Some(facts) = plain else {
        found[out::KEY_HASH] = scratch.count;
        return Status::AskTwin;
    };
    *found = nothing_found();
    let needs = facts.uses & (uses::TOOLS | uses::VISION | uses::AUDIO | uses::JSON_SCHEMA);
    let path = head_words[head::PATH];
    let text_bytes = if is_one_text(path, &facts) { body.len().saturating_sub(facts.media_bytes) } else { 0 };
    let context_tokens = ((text_bytes / 4) as u32).wrapping_add(facts.max_tokens);
    // Spans lie within the body, whose length is a u32.
    found[out::MODEL_START] = facts.model.start as u32;
    found[out::MODEL_END] = facts.model.end as u32;
    found[out::PREVIOUS_START] = facts.previous.start as u32;
    found[out::PREVIOUS_END] = facts.previous.end as u32;
    found[out::CONVERSATION_START] = facts.conversation.start as u32;
    found[out::CONVERSATION_END] = facts.conversation.end as u32;
    found[out::STREAM] = u32::from(facts.stream);
    found[out::STORE] = u32::from(facts.store);
    found[out::BACKGROUND] = u32::from(facts.background);
    found[out::CHOICES] = facts.choices.max(1);
    found[out::NEEDS] = needs;
    found[out::FIRST] = u32::from(is_first(path, &facts));
    found[out::CONTEXT_TOKENS] = context_tokens;

    let key = find_key(head_words, head_bytes, body, &facts, scratch.count);
    found[out::KEY_SOURCE] = key.source as u32;
    found[out::KEY_HASH] = key.hash;
    found[out::KEY_HASH_2] = key.hash2;

    let (classed, status) = classify(table, head_words, body, &facts);
    found[out::MODEL] = classed.model.map_or(NONE, |model| model as u32);
    found[out::ALIASED] = u32::from(classed.is_aliased);
    found[out::REQUEST_CLASS] = classed.class.map_or(NONE, |class| class as u32);
    let Some(cell) = classed.class.and_then(|class| table.classes[class].cell) else {
        return status;
    };
    let live = &mut scratch.live_parts[cell];
    let cell = &table.cells[cell];
    found[out::CELL] = cell.index;
    let request = Request {
        head_words,
        needs,
        context_tokens,
        has_key: key.source != KeySource::None,
        hash: key.hash,
        hash2: key.hash2,
        is_first: found[out::FIRST] == 1,
    };
    let (picked, status) = pick(cell, shared, live, &request);
    let slot_of = |candidate: usize| cell.candidates[candidate].slot;
    found[out::SLOT] = picked.slot.unwrap_or(NONE);
    found[out::HOME] = picked.home.map_or(NONE, slot_of);
    found[out::SECOND] = picked.second.map_or(NONE, slot_of);
    if let Some((taker, reason)) = picked.taker {
        found[out::ENGINE] = slot_of(taker);
        found[out::REASON] = reason as u32;
    }
    status
}

/// Whether a body shows itself to be a conversation's first request.
fn is_first(path: u32, facts: &Facts) -> bool {
    match path {
        _ if facts.has_turn => false,
        path::CHAT | path::MESSAGES => facts.has_messages,
        // What the engine keeps of a conversation, the body doesn't show.
        path::RESPONSES => facts.previous.is_empty() && facts.conversation.is_empty(),
        _ => false,
    }
}

/// Whether the body's bytes are one context. Each of many prompts in one body has the context to itself, so their sum says
/// nothing; and tokens that are only counted need none.
fn is_one_text(path: u32, facts: &Facts) -> bool {
    match path {
        path::COMPLETIONS => !facts.prompt_is_list,
        path::EMBEDDINGS => !facts.input_is_list,
        path::CHAT | path::MESSAGES | path::RESPONSES => true,
        _ => false,
    }
}

fn nothing_found() -> [u32; out::WORDS] {
    let mut found = [0; out::WORDS];
    for place in [out::ENGINE, out::REQUEST_CLASS, out::CELL, out::HOME, out::SECOND, out::SLOT, out::MODEL] {
        found[place] = NONE;
    }
    found
}
