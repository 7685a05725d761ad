//! A place for one answer at a time, and the connection that it comes by.

use crate::link::Link;
use crate::message::{Kind, Message};
use crate::timer::now_ns;
use std::io;

pub struct Peer {
    /// None until there is something to send, and after the other side has ended it.
    pub link: Option<Link>,
    pub answer: Message,
    pub sent_ns: u64,
    /// A request was sent whose answer is not whole yet.
    pub waits: bool,
    pub had_byte: bool,
    /// Some answer has come, or the first event of one.
    pub ever_awake: bool,
    /// Body bytes that may hold the beginning of a stamp.
    pub rest: Vec<u8>,
}

impl Peer {
    pub fn new() -> Peer {
        Peer {
            link: None,
            answer: Message::new(Kind::Answer),
            sent_ns: 0,
            waits: false,
            had_byte: false,
            ever_awake: false,
            rest: Vec::new(),
        }
    }

    /// Sends a request and waits for its answer from now on.
    pub fn send(&mut self, request: &[u8]) -> io::Result<()> {
        self.answer = Message::new(Kind::Answer);
        self.waits = true;
        self.had_byte = false;
        self.rest.clear();
        self.sent_ns = now_ns();
        self.link.as_mut().map_or(Ok(()), |link| link.send(request))
    }

    /// Whether its answer should have begun by `limit_ns` after it was asked for, and has not.
    pub fn is_late(&self, now_ns: u64, limit_ns: u64) -> bool {
        self.waits && !self.had_byte && now_ns > self.sent_ns + limit_ns
    }
}
