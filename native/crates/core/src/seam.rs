//! The places of the words that cross: `HEAD`, `OUT`, `ROUTE_STATUS`, `PATH`, `STATE` and the lists of
//! `packages/selector/src/router.ts`. A test on the TypeScript side holds the two together.

/// Engines that one request may have tried.
pub const TRIED_MAX: usize = 8;

/// What the gateway read from a request's head.
pub mod head {
    pub const PATH: usize = 0;
    /// 1 + the index of the class that a trusted header names; 0 = none.
    pub const CLASS_NAMED: usize = 1;
    /// XXH32 of the tenant; 0 = none.
    pub const TENANT: usize = 2;
    pub const SESSION_KEY_BYTES: usize = 3;
    /// 1 + the index of the residency that a trusted header names; 0 = none.
    pub const RESIDENCY: usize = 4;
    pub const NOW_S: usize = 5;
    pub const TRIED_COUNT: usize = 6;
    /// 1 = first requests go to home or second, whichever has fewer streams for its part.
    pub const PLACEMENT: usize = 7;
    /// 1 + the state slot of the engine that holds what `previous_response_id` names; 0 = not known.
    pub const FOLLOWED: usize = 8;
    pub const TRIED: usize = 9;
    pub const WORDS: usize = TRIED + super::TRIED_MAX;
}

/// What was found.
pub mod out {
    pub const ENGINE: usize = 0;
    pub const REQUEST_CLASS: usize = 1;
    pub const CELL: usize = 2;
    pub const REASON: usize = 3;
    pub const KEY_SOURCE: usize = 4;
    pub const HOME: usize = 5;
    pub const SECOND: usize = 6;
    pub const SLOT: usize = 7;
    pub const KEY_HASH: usize = 8;
    pub const KEY_HASH_2: usize = 9;
    pub const MODEL_START: usize = 10;
    pub const MODEL_END: usize = 11;
    pub const STREAM: usize = 12;
    pub const FIRST: usize = 13;
    pub const NEEDS: usize = 14;
    pub const CONTEXT_TOKENS: usize = 15;
    pub const STORE: usize = 16;
    pub const PREVIOUS_START: usize = 17;
    pub const PREVIOUS_END: usize = 18;
    pub const CONVERSATION_START: usize = 19;
    pub const CONVERSATION_END: usize = 20;
    pub const BACKGROUND: usize = 21;
    pub const CHOICES: usize = 22;
    pub const MODEL: usize = 23;
    pub const ALIASED: usize = 24;
    pub const UNUSUAL: usize = 25;
    pub const WORDS: usize = 26;
}

/// In `out`: no such engine, slot, class or cell.
pub const NONE: u32 = u32::MAX;

pub mod path {
    pub const CHAT: u32 = 0;
    pub const COMPLETIONS: u32 = 1;
    pub const EMBEDDINGS: u32 = 2;
    pub const RESPONSES: u32 = 3;
    pub const MESSAGES: u32 = 4;
    pub const COUNT_TOKENS: u32 = 5;
    pub const RERANK: u32 = 6;
    pub const SCORE: u32 = 7;
    pub const TOKENIZE: u32 = 8;
    pub const DETOKENIZE: u32 = 9;
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Status {
    Ok = 0,
    ModelRequired = 2,
    ModelNotFound = 3,
    NoEligibleEngine = 4,
    Exhausted = 5,
    /// Not a status of the seam but `NATIVE_UNUSUAL`: the scan left the body to `JSON.parse`, and so to the TypeScript twin.
    AskTwin = 255,
}

/// Bits of an engine's state word; the low 16 are the factor that its share is multiplied by, in 65535ths.
pub mod state {
    pub const FACTOR_MASK: u32 = 0xFFFF;
    pub const OUT: u32 = 1 << 16;
    pub const DRAINING: u32 = 1 << 17;
    pub const COOLING: u32 = 1 << 18;
    pub const OUT_BY_PROBE: u32 = 1 << 19;
}

/// Places in `REASONS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Reason {
    Home = 0,
    Second = 1,
    Followed = 2,
    Bounded = 3,
    Penalised = 4,
    Ejected = 5,
    Cooled = 6,
    Reserve = 8,
    Retry = 9,
    FailOpen = 10,
    Bootstrap = 11,
}

/// Places in `KEY_SOURCES`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum KeySource {
    Header = 0,
    PromptCacheKey = 1,
    PreviousResponseId = 2,
    Conversation = 3,
    SessionId = 4,
    Prompt = 6,
    None = 7,
}
