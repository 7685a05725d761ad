//! Where conversations are that the bound or a choice moved away from home. The twin of `packages/selector/src/moves.ts`,
//! which says what an entry is and why a lost race costs a cache miss and nothing else.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::xxh32::xxh32_of_word;

const ENTRY_WORDS: usize = 2;
/// Eight entries, a cache line.
pub const SET_WORDS: usize = 8 * ENTRY_WORDS;
/// As long as an engine may be thought to keep the blocks of a conversation that rests.
const IDLE_S: i32 = 600;

/// What is known of one conversation.
pub struct Move<'a> {
    set: &'a [AtomicU32],
    tag: u32,
    /// Its entry's place in the set.
    entry: Option<usize>,
    now_s: u32,
}

/// `cell`: the cell's in-flight row; its conversations are its own.
pub fn find(moves: &[AtomicU32], hash: u32, hash2: u32, cell: u32, now_s: u32) -> (Move<'_>, Option<u32>) {
    let (sets, _) = moves.as_chunks::<SET_WORDS>();
    let set = &sets[xxh32_of_word(hash2, cell) as usize & (sets.len() - 1)];
    let tag = hash & 0xFFFF;
    // One load of the word: another thread may give the entry to another conversation meanwhile.
    let mut words = (0..SET_WORDS).step_by(ENTRY_WORDS).map(|at| (at, load(&set[at])));
    let entry = words.find(|(_, word)| word >> 16 == tag && word & 0xFFFF != 0);
    let slot = entry.filter(|(at, _)| !is_idle(load(&set[at + 1]), now_s)).map(|(_, word)| (word & 0xFFFF) - 1);
    (Move { set, tag, entry: entry.map(|(at, _)| at), now_s }, slot)
}

impl Move<'_> {
    /// The conversation was sent where it is: it is not idle.
    pub fn touch(&self) {
        let Some(at) = self.entry else { return };
        if load(&self.set[at + 1]) != self.now_s {
            self.set[at + 1].store(self.now_s, Ordering::Relaxed);
        }
    }

    /// The conversation is at `slot` from now on.
    pub fn remember(&self, slot: u32) {
        let at = self.entry.unwrap_or_else(|| self.oldest());
        let before = load(&self.set[at]);
        let after = self.tag << 16 | (slot + 1) & 0xFFFF;
        if self.set[at].compare_exchange(before, after, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            self.set[at + 1].store(self.now_s, Ordering::Relaxed);
        }
    }

    /// The conversation is at home again.
    pub fn forget(&self) {
        let Some(at) = self.entry else { return };
        let before = load(&self.set[at]);
        if before >> 16 == self.tag {
            // Lost to another thread: that one knows better.
            let _ = self.set[at].compare_exchange(before, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// The set's first entry that is free or idle, else the one used least lately.
    fn oldest(&self) -> usize {
        let mut oldest = 0;
        let mut most_s = -1;
        for at in (0..SET_WORDS).step_by(ENTRY_WORDS) {
            let used_s = load(&self.set[at + 1]);
            if load(&self.set[at]) == 0 || is_idle(used_s, self.now_s) {
                return at;
            }
            let age_s = age_s(used_s, self.now_s).max(0);
            if age_s > most_s {
                most_s = age_s;
                oldest = at;
            }
        }
        oldest
    }
}

/// Threads read the clock a moment apart, so a use may lie ahead.
fn is_idle(used_s: u32, now_s: u32) -> bool {
    age_s(used_s, now_s) > IDLE_S
}

fn age_s(used_s: u32, now_s: u32) -> i32 {
    now_s.wrapping_sub(used_s).cast_signed()
}

fn load(word: &AtomicU32) -> u32 {
    word.load(Ordering::Relaxed)
}
