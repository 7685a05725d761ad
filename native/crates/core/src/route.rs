//! One request: scan, key, class, pick. The twin of `packages/selector/src/ts-router.ts`.

use crate::classify::classify;
use crate::key::find_key;
use crate::names::uses;
use crate::pick::{Request, Verdict, pick};
use crate::scan::{Facts, scan};
use crate::seam::{NONE, Status, head, out, path};
use crate::state::SharedState;
use crate::table::Table;

/// What one thread's router needs beside the table: room for what a call finds, so that a call allocates nothing.
#[derive(Debug)]
pub struct Scratch {
    scores: Box<[(f64, Verdict)]>,
    count: u32,
}

impl Scratch {
    pub fn for_table(table: &Table) -> Self {
        let most = table.cells.iter().map(|cell| cell.candidates.len()).max().unwrap_or(0);
        Self { scores: vec![(0.0, Verdict::Never); most].into(), count: 0 }
    }
}

/// Decides one request and writes what was found to `found`. On [`Status::AskTwin`] `found` has the number of this call in
/// the place of the key's hash and nothing else.
pub fn route(
    table: &Table,
    shared: &impl SharedState,
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
    let context_tokens = context_tokens(head_words[head::PATH], body.len(), &facts);
    let is_first = head_words[head::PATH] == path::CHAT && facts.has_messages && !facts.has_turn;
    // Spans lie within the body, whose length is a u32.
    found[out::MODEL_START] = facts.model.start as u32;
    found[out::MODEL_END] = facts.model.end as u32;
    found[out::STREAM] = u32::from(facts.stream);
    found[out::STORE] = u32::from(facts.store);
    found[out::NEEDS] = needs;
    found[out::FIRST] = u32::from(is_first);
    found[out::CONTEXT_TOKENS] = context_tokens;

    let key = find_key(head_words, head_bytes, body, &facts, scratch.count);
    found[out::KEY_SOURCE] = key.source as u32;
    found[out::KEY_HASH] = key.hash;
    found[out::KEY_HASH_2] = key.hash2;

    let (class, status) = classify(table, head_words, body, &facts);
    found[out::REQUEST_CLASS] = class.map_or(NONE, |class| class as u32);
    let Some(cell) = class.and_then(|class| table.classes[class].cell).map(|cell| &table.cells[cell]) else {
        return status;
    };
    found[out::CELL] = cell.index;
    let request = Request { head_words, needs, context_tokens, hash: key.hash, hash2: key.hash2 };
    let (picked, status) = pick(cell, shared, &request, &mut scratch.scores);
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

/// Bytes of text ÷ 4, and the most output tokens asked for. Each of many prompts in one body has the context to itself, so
/// their sum says nothing.
fn context_tokens(path: u32, bytes: usize, facts: &Facts) -> u32 {
    let is_list = match path {
        path::CHAT => false,
        path::EMBEDDINGS => facts.input_is_list,
        _ => facts.prompt_is_list,
    };
    let text_bytes = if is_list { 0 } else { bytes.saturating_sub(facts.media_bytes) };
    ((text_bytes / 4) as u32).wrapping_add(facts.max_tokens)
}

fn nothing_found() -> [u32; out::WORDS] {
    let mut found = [0; out::WORDS];
    for place in [out::ENGINE, out::REQUEST_CLASS, out::CELL, out::HOME, out::SECOND, out::SLOT] {
        found[place] = NONE;
    }
    found
}
