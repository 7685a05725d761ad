//! Reads what routing needs from the bytes of a JSON object, without building values. It walks every top-level name:
//! JSON parsers take the last of two equal names, so stopping at the first `model` would route by one and serve another.
//! The twin of `packages/selector/src/scan.ts`.
//!
//! Gives `None` for whatever is not plain: names that stand twice or have an escape where a wanted one may stand, an
//! escape inside a wanted string, numbers and nulls whose meaning is not plain, a byte order mark, nesting beyond
//! `DEPTH_MAX`, and all that is not JSON. `JSON.parse` decides those, on the TypeScript side.

use crate::json::{skip_colon, skip_space, skip_string, skip_value};
use crate::names::{Kind, Member, Role, member_of, part_need, role_of, uses};

/// How many system and developer messages before the first user message belong to the key.
pub const PIECES_MAX: usize = 8;

/// Byte offsets; empty where start = end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub start: usize,
    pub end: usize,
}

impl Span {
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }
}

/// What a body says that routing needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// String content of `model`; an empty or missing string is an empty span, here and below.
    pub model: Span,
    /// `model` is there and neither a string nor null.
    pub model_is_odd: bool,
    /// String content of `prompt_cache_key`.
    pub cache_key: Span,
    /// String content of `previous_response_id`.
    pub previous: Span,
    /// String content of `conversation`, or of its `id`.
    pub conversation: Span,
    /// String content of `metadata.session_id`.
    pub session: Span,
    /// The raw value of `prompt`.
    pub prompt: Span,
    /// The raw value of `input`.
    pub input: Span,
    /// The raw value of `query`, `queries` or `text_1`.
    pub query: Span,
    /// The raw value of `tokens`.
    pub tokens: Span,
    /// The raw value of `system` or `instructions`: what a messages or responses body has instead of a first message.
    pub system: Span,
    /// The raw `content` of the first user message.
    pub user: Span,
    /// The raw contents of the system and developer messages before it, `piece_count` of them.
    pub pieces: [Span; PIECES_MAX],
    pub piece_count: usize,
    pub stream: bool,
    pub store: bool,
    pub background: bool,
    /// Bits of `uses`.
    pub uses: u32,
    /// The most output tokens asked for.
    pub max_tokens: u32,
    /// `n`; 0 where none was asked.
    pub choices: u32,
    /// Bytes of image and audio parts: they are no text, so they don't count as tokens.
    pub media_bytes: usize,
    /// `messages` is a list.
    pub has_messages: bool,
    /// A message is an assistant's or a tool's: not a conversation's first request.
    pub has_turn: bool,
    /// A user message was seen.
    pub has_user: bool,
    /// `prompt` or `input` is a list: many prompts in one body.
    pub prompt_is_list: bool,
    pub input_is_list: bool,
}

pub fn scan(body: &[u8]) -> Option<Facts> {
    let mut scan = Scan { body, facts: Facts::default(), message: Message::default(), part_need: 0, inner_need: 0 };
    let start = skip_space(body, 0);
    if body.get(start) != Some(&b'{') {
        return None;
    }
    let after = scan.object(Kind::Body, start)?;
    (skip_space(body, after) == body.len()).then_some(scan.facts)
}

struct Scan<'a> {
    body: &'a [u8],
    facts: Facts,
    /// Of the message being read.
    message: Message,
    /// Of the content part being read.
    part_need: u32,
    /// Of the part within that part, as in a tool's result.
    inner_need: u32,
}

#[derive(Default)]
struct Message {
    role: Role,
    content: Span,
    /// An item that is no message but a call, its result or the like.
    is_call: bool,
}

/// Each step takes the place of a value's first byte and gives the place after the value.
impl Scan<'_> {
    fn object(&mut self, kind: Kind, start: usize) -> Option<usize> {
        let body = self.body;
        let mut seen = 0;
        let mut at = skip_space(body, start + 1);
        if body.get(at) == Some(&b'}') {
            return Some(at + 1);
        }
        loop {
            if body.get(at) != Some(&b'"') {
                return None;
            }
            let name = skip_string(body, at + 1)?;
            // Escaped, a name may be any of those wanted.
            if name.has_escape {
                return None;
            }
            let member = member_of(kind, &body[at + 1..name.end - 1]);
            if seen & member.once() != 0 {
                return None;
            }
            seen |= member.once();
            at = skip_colon(body, name.end)?;
            at = self.member(member, at)?;
            at = skip_space(body, at);
            match body.get(at)? {
                b'}' => return Some(at + 1),
                b',' => at = skip_space(body, at + 1),
                _ => return None,
            }
        }
    }

    fn member(&mut self, member: Member, start: usize) -> Option<usize> {
        let body = self.body;
        let first = *body.get(start)?;
        match member {
            Member::Model => {
                self.facts.model_is_odd = first != b'"' && first != b'n';
                return self.text(start, |facts| &mut facts.model);
            }
            Member::PromptCacheKey => return self.text(start, |facts| &mut facts.cache_key),
            Member::PreviousResponseId => return self.text(start, |facts| &mut facts.previous),
            Member::SessionId => return self.text(start, |facts| &mut facts.session),
            Member::ConversationId => return self.text(start, |facts| &mut facts.conversation),
            Member::Conversation if first == b'{' => return self.object(Kind::Conversation, start),
            Member::Conversation => return self.text(start, |facts| &mut facts.conversation),
            Member::Metadata if first == b'{' => return self.object(Kind::Metadata, start),
            Member::Stream => self.facts.stream |= first == b't',
            Member::Store => self.facts.store |= first == b't',
            Member::Background => self.facts.background |= first == b't',
            Member::Tools | Member::Functions if first == b'[' => {
                let is_empty = body.get(skip_space(body, start + 1)) == Some(&b']');
                self.facts.uses |= if is_empty { 0 } else { uses::TOOLS };
            }
            Member::Reasoning | Member::ReasoningEffort if first != b'n' => self.facts.uses |= uses::REASONING,
            // Of names with this beginning there may be many, and one may stand twice: the last counts. Without nulls
            // the order doesn't matter.
            Member::Guided if first == b'n' => return None,
            Member::Guided => self.facts.uses |= uses::JSON_SCHEMA,
            Member::Thinking if first == b'{' => return self.object(Kind::Thinking, start),
            Member::ThinkingType => {
                let (end, name) = self.wanted_string(start)?;
                if name.is_some_and(|name| name != b"disabled") {
                    self.facts.uses |= uses::REASONING;
                }
                return Some(end);
            }
            Member::StructuredOutputs if first != b'n' => self.facts.uses |= uses::JSON_SCHEMA,
            Member::MaxTokens | Member::MaxCompletionTokens | Member::MaxOutputTokens => {
                return self.count(start, |facts| &mut facts.max_tokens);
            }
            Member::Choices => return self.count(start, |facts| &mut facts.choices),
            Member::Text | Member::OutputConfig if first == b'{' => return self.object(Kind::Text, start),
            Member::ResponseFormat | Member::OutputFormat | Member::TextFormat if first == b'{' => {
                return self.object(Kind::Format, start);
            }
            Member::FormatType => {
                let (end, name) = self.wanted_string(start)?;
                if name.is_some_and(|name| name != b"text") {
                    self.facts.uses |= uses::JSON_SCHEMA;
                }
                return Some(end);
            }
            Member::Messages if first == b'[' => {
                self.facts.has_messages = true;
                return self.list(List::Messages, start);
            }
            Member::Prompt => {
                self.facts.prompt_is_list = first == b'[';
                return self.raw(start, |facts| &mut facts.prompt);
            }
            Member::Input if first == b'[' => {
                self.facts.input_is_list = true;
                let end = self.list(List::Items, start)?;
                self.facts.input = Span { start, end };
                return Some(end);
            }
            Member::Input => return self.raw(start, |facts| &mut facts.input),
            Member::Query | Member::Queries | Member::Text1 => return self.raw(start, |facts| &mut facts.query),
            Member::Tokens => return self.raw(start, |facts| &mut facts.tokens),
            Member::System | Member::Instructions => return self.raw(start, |facts| &mut facts.system),
            Member::Role => {
                let (end, name) = self.wanted_string(start)?;
                if let Some(name) = name {
                    self.message.role = role_of(name);
                }
                return Some(end);
            }
            Member::ItemType => {
                let (end, name) = self.wanted_string(start)?;
                if let Some(name) = name {
                    self.message.is_call = name != b"message";
                }
                return Some(end);
            }
            Member::Content => {
                let end = if first == b'[' { self.list(List::Parts, start)? } else { skip_value(body, start)? };
                self.message.content = Span { start, end };
                return Some(end);
            }
            Member::Output if first == b'[' => return self.list(List::Parts, start),
            Member::PartContent if first == b'[' => return self.list(List::InnerParts, start),
            Member::PartType => {
                let (end, name) = self.wanted_string(start)?;
                if let Some(name) = name {
                    self.part_need = part_need(name);
                }
                return Some(end);
            }
            Member::InnerType => {
                let (end, name) = self.wanted_string(start)?;
                if let Some(name) = name {
                    self.inner_need = part_need(name);
                }
                return Some(end);
            }
            _ => {}
        }
        skip_value(body, start)
    }

    /// The elements of `messages`, of a responses' `input`, of a message's `content`, or of a part's.
    fn list(&mut self, list: List, start: usize) -> Option<usize> {
        let body = self.body;
        let mut at = skip_space(body, start + 1);
        if body.get(at) == Some(&b']') {
            return Some(at + 1);
        }
        loop {
            let element = at;
            if *body.get(at)? != b'{' {
                at = skip_value(body, at)?;
            } else {
                at = match list {
                    List::Messages => self.message(Kind::Message, at)?,
                    List::Items => self.message(Kind::Item, at)?,
                    List::Parts => {
                        self.part_need = 0;
                        let end = self.object(Kind::Part, at)?;
                        self.end_part(self.part_need, end - element);
                        end
                    }
                    List::InnerParts => {
                        self.inner_need = 0;
                        let end = self.object(Kind::InnerPart, at)?;
                        self.end_part(self.inner_need, end - element);
                        end
                    }
                };
            }
            at = skip_space(body, at);
            match body.get(at)? {
                b']' => return Some(at + 1),
                b',' => at = skip_space(body, at + 1),
                _ => return None,
            }
        }
    }

    fn end_part(&mut self, need: u32, bytes: usize) {
        if need != 0 {
            self.facts.uses |= need;
            self.facts.media_bytes += bytes;
        }
    }

    fn message(&mut self, kind: Kind, start: usize) -> Option<usize> {
        self.message = Message::default();
        let end = self.object(kind, start)?;
        self.end_message();
        Some(end)
    }

    /// What a message, now read whole, means for the key. System messages after the first user message are not part of
    /// it: they come with later turns, and the key must not change as turns are appended.
    fn end_message(&mut self) {
        let Message { role, content, is_call } = self.message;
        let facts = &mut self.facts;
        match role {
            _ if is_call => facts.has_turn = true,
            Role::Turn => facts.has_turn = true,
            Role::User if !facts.has_user => {
                facts.has_user = true;
                facts.user = content;
            }
            Role::System if !facts.has_user && !content.is_empty() && facts.piece_count < PIECES_MAX => {
                facts.pieces[facts.piece_count] = content;
                facts.piece_count += 1;
            }
            _ => {}
        }
    }

    /// A wanted string's content goes to `place`; a value of another type leaves it.
    fn text(&mut self, start: usize, place: impl Fn(&mut Facts) -> &mut Span) -> Option<usize> {
        let (end, text) = self.wanted_string(start)?;
        if text.is_some() {
            *place(&mut self.facts) = Span { start: start + 1, end: end - 1 };
        }
        Some(end)
    }

    fn raw(&mut self, start: usize, place: impl Fn(&mut Facts) -> &mut Span) -> Option<usize> {
        let end = skip_value(self.body, start)?;
        *place(&mut self.facts) = Span { start, end };
        Some(end)
    }

    /// The place after the value, and its content where it is a string; `None` when an escape hides what it says.
    fn wanted_string(&self, start: usize) -> Option<(usize, Option<&[u8]>)> {
        if self.body[start] != b'"' {
            return Some((skip_value(self.body, start)?, None));
        }
        let text = skip_string(self.body, start + 1)?;
        if text.has_escape {
            return None;
        }
        Some((text.end, Some(&self.body[start + 1..text.end - 1])))
    }

    /// A whole number, the largest of those that share `place`. Up to nine digits, which is more than any engine gives;
    /// what else is a number is not plain.
    fn count(&mut self, start: usize, place: impl Fn(&mut Facts) -> &mut u32) -> Option<usize> {
        let end = skip_value(self.body, start)?;
        let value = &self.body[start..end];
        if value.len() <= 9 && value.iter().all(u8::is_ascii_digit) {
            let count = value.iter().fold(0, |count, digit| count * 10 + u32::from(digit - b'0'));
            let place = place(&mut self.facts);
            *place = count.max(*place);
        } else if value[0] == b'-' || value[0].is_ascii_digit() {
            return None;
        }
        Some(end)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum List {
    Messages,
    Items,
    Parts,
    InnerParts,
}
