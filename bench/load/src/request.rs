//! The requests that are sent: chat bodies of one size, their prompts of 1,024 sessions in turn, so that a router that goes
//! by the prompt spreads them.

use crate::marker::{Pace, find};
use std::net::SocketAddr;

const SESSIONS: u32 = 1024;
const SESSION: &str = "session-0000";

pub struct Requests {
    bytes: Vec<u8>,
    /// Where the session's four digits stand.
    digits: usize,
    next: u32,
}

impl Requests {
    /// @param body_bytes a body can't be shorter than its own frame, about 200 bytes
    pub fn new(to: SocketAddr, body_bytes: usize, stream: Option<Pace>) -> Requests {
        let mark = stream.map(|pace| pace.mark() + " ").unwrap_or_default();
        let open = format!(
            "{{\"model\":\"m\",\"messages\":[{{\"role\":\"system\",\"content\":\"You are of help.\"}},\
             {{\"role\":\"user\",\"content\":\"{mark}{SESSION} "
        );
        let close = format!("\"}}],\"temperature\":0.5,\"max_tokens\":256,\"stream\":{}}}", stream.is_some());
        let fill = body_bytes.saturating_sub(open.len() + close.len());
        let words: String = "the quick brown fox jumps over a lazy dog and ".chars().cycle().take(fill).collect();
        let body = [open, words, close].concat();
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: {to}\r\nuser-agent: guidevane-load\r\naccept: */*\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let bytes = [head, body].concat().into_bytes();
        let digits = find(&bytes, SESSION.as_bytes()).map_or(0, |at| at + SESSION.len() - 4);
        Requests { bytes, digits, next: 0 }
    }

    /// The next one, whole.
    pub fn next(&mut self) -> &[u8] {
        let session = format!("{:04}", self.next);
        self.next = (self.next + 1) % SESSIONS;
        self.bytes[self.digits..self.digits + 4].copy_from_slice(session.as_bytes());
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Kind, Message};

    #[test]
    fn has_the_size_that_is_asked_for_and_another_session_each_time() {
        let to = SocketAddr::from(([127, 0, 0, 1], 80));
        let pace = Pace { every_ms: 20, events: 5 };
        let mut requests = Requests::new(to, 1024, Some(pace));
        let mut bodies = Vec::new();
        for _ in 0..2 {
            let mut body = Vec::new();
            let mut message = Message::new(Kind::Request);
            message.push(requests.next(), &mut |more| body.extend_from_slice(more)).unwrap();
            assert!(message.is_done());
            bodies.push(body);
        }
        assert_eq!(bodies[0].len(), 1024);
        assert_eq!(Pace::find(&bodies[0]), Some(pace));
        assert!(find(&bodies[0], b"session-0000").is_some() && find(&bodies[1], b"session-0001").is_some());
    }
}
