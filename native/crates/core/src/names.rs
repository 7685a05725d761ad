//! The names in a body that mean something to routing. The twin of `packages/selector/src/scan-names.ts`.

/// What a body uses, as bits: `NEED` of the router, and what only a class's needs ask about.
pub mod uses {
    pub const TOOLS: u32 = 1;
    pub const VISION: u32 = 2;
    pub const AUDIO: u32 = 4;
    pub const JSON_SCHEMA: u32 = 8;
    pub const REASONING: u32 = 16;
    pub const EMBEDDINGS: u32 = 32;
    pub const RERANK: u32 = 64;
}

/// The objects of a body whose names mean something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Body,
    Message,
    /// Of a list of `input`.
    Item,
    Part,
    /// Within a part.
    InnerPart,
    Format,
    Text,
    Metadata,
    Conversation,
    Thinking,
}

/// Wanted names. Those of one object that were seen are bits of a word, the number's low five bits naming the bit: a
/// body's own are 1 to 31, and those of no other kind of object are 32 apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Member {
    Other,
    Model,
    Stream,
    Messages,
    Prompt,
    Input,
    /// `tools` and `functions` are two names, so both may stand.
    Tools,
    Functions,
    ResponseFormat,
    Text,
    MaxTokens,
    MaxCompletionTokens,
    MaxOutputTokens,
    PromptCacheKey,
    Conversation,
    Metadata,
    Store,
    Reasoning,
    ReasoningEffort,
    Background,
    PreviousResponseId,
    Choices,
    System,
    Instructions,
    Thinking,
    OutputFormat,
    OutputConfig,
    StructuredOutputs,
    Query,
    Queries,
    Text1,
    Tokens,
    /// Any `guided_*`, of which there may be many.
    Guided,
    Role,
    Content,
    Output,
    ItemType,
    PartType,
    PartContent,
    InnerType,
    FormatType,
    TextFormat,
    SessionId,
    ConversationId,
    ThinkingType,
}

impl Member {
    /// Its bit among the names of one object; 0 for those of which many may stand.
    pub fn once(self) -> u32 {
        if matches!(self, Self::Other | Self::Guided) { 0 } else { 1 << (self as u32 & 31) }
    }
}

/// The member that a name of this object is.
pub fn member_of(kind: Kind, name: &[u8]) -> Member {
    match kind {
        Kind::Body => match name {
            b"model" => Member::Model,
            b"stream" => Member::Stream,
            b"messages" => Member::Messages,
            b"prompt" => Member::Prompt,
            b"input" => Member::Input,
            b"tools" => Member::Tools,
            b"functions" => Member::Functions,
            b"response_format" => Member::ResponseFormat,
            b"text" => Member::Text,
            b"max_tokens" => Member::MaxTokens,
            b"max_completion_tokens" => Member::MaxCompletionTokens,
            b"max_output_tokens" => Member::MaxOutputTokens,
            b"prompt_cache_key" => Member::PromptCacheKey,
            b"conversation" => Member::Conversation,
            b"metadata" => Member::Metadata,
            b"store" => Member::Store,
            b"reasoning" => Member::Reasoning,
            b"reasoning_effort" => Member::ReasoningEffort,
            b"background" => Member::Background,
            b"previous_response_id" => Member::PreviousResponseId,
            b"n" => Member::Choices,
            b"system" => Member::System,
            b"instructions" => Member::Instructions,
            b"thinking" => Member::Thinking,
            b"output_format" => Member::OutputFormat,
            b"output_config" => Member::OutputConfig,
            b"structured_outputs" => Member::StructuredOutputs,
            b"query" => Member::Query,
            b"queries" => Member::Queries,
            b"text_1" => Member::Text1,
            b"tokens" => Member::Tokens,
            _ if name.len() > GUIDED.len() && name.starts_with(GUIDED) => Member::Guided,
            _ => Member::Other,
        },
        Kind::Message => match name {
            b"role" => Member::Role,
            b"content" => Member::Content,
            _ => Member::Other,
        },
        Kind::Item => match name {
            b"role" => Member::Role,
            b"content" => Member::Content,
            b"output" => Member::Output,
            b"type" => Member::ItemType,
            _ => Member::Other,
        },
        Kind::Part => match name {
            b"type" => Member::PartType,
            b"content" => Member::PartContent,
            _ => Member::Other,
        },
        Kind::InnerPart if name == b"type" => Member::InnerType,
        Kind::Format if name == b"type" => Member::FormatType,
        Kind::Text if name == b"format" => Member::TextFormat,
        Kind::Metadata if name == b"session_id" => Member::SessionId,
        Kind::Conversation if name == b"id" => Member::ConversationId,
        Kind::Thinking if name == b"type" => Member::ThinkingType,
        _ => Member::Other,
    }
}

const GUIDED: &[u8] = b"guided_";

/// Roles, as far as they matter: a `Turn` is an assistant's, a tool's or a function's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    #[default]
    Other,
    System,
    User,
    Turn,
}

pub fn role_of(name: &[u8]) -> Role {
    match name {
        b"user" => Role::User,
        b"assistant" | b"tool" | b"function" => Role::Turn,
        b"system" | b"developer" => Role::System,
        _ => Role::Other,
    }
}

/// What an engine must be able to take for a content part of this type; 0 for text and the unknown.
pub fn part_need(name: &[u8]) -> u32 {
    match name {
        b"image_url" | b"input_image" | b"image" => uses::VISION,
        b"input_audio" | b"audio_url" | b"audio" => uses::AUDIO,
        _ => 0,
    }
}
