//! One HTTP/1.1 message, read from whatever pieces arrive: as much of RFC 9112 as proxies and engines use with each other.

use crate::marker::find;

#[derive(Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Request,
    Answer,
}

enum State {
    Head,
    Sized(u64),
    ChunkSize,
    Chunk(u64),
    ChunkEnd,
    Trailers,
    UntilClose,
    Done,
}

pub struct Message {
    kind: Kind,
    state: State,
    /// The head, or a line between chunks, as far as it has come.
    line: Vec<u8>,
    /// Of an answer, once its head is there.
    pub status: u16,
    /// Of a request: method and target.
    pub target: String,
    /// Whether the connection stays open after it.
    pub keeps_alive: bool,
}

const HEAD_BYTES: usize = 64 << 10;

impl Message {
    pub fn new(kind: Kind) -> Message {
        let target = String::new();
        Message { kind, state: State::Head, line: Vec::new(), status: 0, target, keeps_alive: true }
    }

    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Whether the connection's end is this message's proper end.
    pub fn ends_by_close(&self) -> bool {
        matches!(self.state, State::UntilClose | State::Done)
    }

    /// Reads up to its end; `body` gets the pieces of the body. Gives back how many bytes were its own.
    pub fn push(&mut self, bytes: &[u8], body: &mut impl FnMut(&[u8])) -> Result<usize, Malformed> {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            match self.state {
                State::Done => break,
                State::Head => match self.until(rest, b"\r\n\r\n")? {
                    None => at = bytes.len(),
                    Some(used) => {
                        at += used;
                        self.read_head()?;
                    }
                },
                State::Sized(left) => {
                    let take = rest.len().min(left as usize);
                    body(&rest[..take]);
                    at += take;
                    self.state = if take as u64 == left { State::Done } else { State::Sized(left - take as u64) };
                }
                State::ChunkSize => match self.until(rest, b"\r\n")? {
                    None => at = bytes.len(),
                    Some(used) => {
                        at += used;
                        let size = chunk_size(&std::mem::take(&mut self.line))?;
                        self.state = if size == 0 { State::Trailers } else { State::Chunk(size) };
                    }
                },
                State::Chunk(left) => {
                    let take = rest.len().min(left as usize);
                    body(&rest[..take]);
                    at += take;
                    self.state = if take as u64 == left { State::ChunkEnd } else { State::Chunk(left - take as u64) };
                }
                State::ChunkEnd => match self.until(rest, b"\r\n")? {
                    None => at = bytes.len(),
                    Some(used) => {
                        at += used;
                        if self.line.len() != 2 {
                            return Err(Malformed("a chunk is longer than it says"));
                        }
                        self.line.clear();
                        self.state = State::ChunkSize;
                    }
                },
                State::Trailers => match self.until(rest, b"\r\n")? {
                    None => at = bytes.len(),
                    Some(used) => {
                        at += used;
                        if self.line.len() == 2 {
                            self.state = State::Done;
                        }
                        self.line.clear();
                    }
                },
                State::UntilClose => {
                    body(rest);
                    at = bytes.len();
                }
            }
        }
        Ok(at)
    }

    /// Gathers in `line` up to and with `end`; how many of `bytes` that took, or none where the end is still to come.
    fn until(&mut self, bytes: &[u8], end: &[u8]) -> Result<Option<usize>, Malformed> {
        let had = self.line.len();
        // The end may have begun in the piece before.
        let from = had.saturating_sub(end.len() - 1);
        self.line.extend_from_slice(bytes);
        match find(&self.line[from..], end) {
            Some(at) => {
                let whole = from + at + end.len();
                self.line.truncate(whole);
                Ok(Some(whole - had))
            }
            None if self.line.len() > HEAD_BYTES => Err(Malformed("a line or head has no end")),
            None => Ok(None),
        }
    }

    fn read_head(&mut self) -> Result<(), Malformed> {
        let head = std::mem::take(&mut self.line);
        let text = std::str::from_utf8(&head).map_err(|_| Malformed("the head is not text"))?;
        let mut lines = text.split("\r\n");
        let first = lines.next().unwrap_or_default();
        let mut words = first.split(' ');
        match self.kind {
            Kind::Answer => {
                self.status = words.nth(1).and_then(|word| word.parse().ok()).ok_or(Malformed("no status"))?;
            }
            Kind::Request => self.target = words.take(2).collect::<Vec<_>>().join(" "),
        }
        let mut length = None;
        let mut chunked = false;
        for line in lines {
            let Some((name, value)) = line.split_once(':') else { continue };
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") {
                length = Some(value.parse::<u64>().map_err(|_| Malformed("content-length is no number"))?);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                chunked = value.eq_ignore_ascii_case("chunked");
            } else if name.eq_ignore_ascii_case("connection") && value.eq_ignore_ascii_case("close") {
                self.keeps_alive = false;
            }
        }
        self.state = match (chunked, length, self.kind) {
            (true, _, _) => State::ChunkSize,
            (false, Some(0), _) | (false, None, Kind::Request) => State::Done,
            (false, Some(length), _) => State::Sized(length),
            (false, None, Kind::Answer) => State::UntilClose,
        };
        if matches!(self.state, State::UntilClose) {
            self.keeps_alive = false;
        }
        Ok(())
    }
}

fn chunk_size(line: &[u8]) -> Result<u64, Malformed> {
    let text = std::str::from_utf8(line).map_err(|_| Malformed("a chunk's size is not text"))?;
    let digits = text.split(';').next().unwrap_or_default().trim();
    u64::from_str_radix(digits, 16).map_err(|_| Malformed("a chunk's size is no number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: Kind, bytes: &[u8], piece: usize) -> (Message, Vec<u8>, usize) {
        let mut message = Message::new(kind);
        let mut body = Vec::new();
        let mut used = 0;
        for part in bytes.chunks(piece) {
            if message.is_done() {
                break;
            }
            used += message.push(part, &mut |more| body.extend_from_slice(more)).unwrap();
        }
        (message, body, used)
    }

    #[test]
    fn reads_bodies_of_each_framing_in_pieces_of_any_size() {
        let sized: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP";
        let chunked: &[u8] = b"HTTP/1.1 503 No\r\ntransfer-encoding: chunked\r\nConnection: close\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nt: 1\r\n\r\n";
        for piece in 1..sized.len() {
            let (message, body, used) = read(Kind::Answer, sized, piece);
            assert_eq!((message.status, body.as_slice(), used), (200, &b"hello"[..], sized.len() - 4));
            assert!(message.is_done() && message.keeps_alive);
        }
        for piece in 1..chunked.len() {
            let (message, body, used) = read(Kind::Answer, chunked, piece);
            assert_eq!((message.status, body.as_slice(), used), (503, &b"hello"[..], chunked.len()));
            assert!(message.is_done() && !message.keeps_alive);
        }
    }

    #[test]
    fn an_answer_without_a_length_ends_with_its_connection() {
        let (message, body, _) = read(Kind::Answer, b"HTTP/1.1 200 OK\r\n\r\nmore", 3);
        assert_eq!(body, b"more");
        assert!(!message.is_done() && message.ends_by_close() && !message.keeps_alive);
        let (cut, ..) = read(Kind::Answer, b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nmore", 3);
        assert!(!cut.ends_by_close());
    }

    #[test]
    fn a_request_without_a_length_has_no_body() {
        let (message, _, _) = read(Kind::Request, b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n", 64);
        assert!(message.is_done());
        assert_eq!(message.target, "GET /health");
    }

    #[test]
    fn refuses_a_chunk_that_is_longer_than_it_says() {
        let mut message = Message::new(Kind::Answer);
        let bytes = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nabc\r\n";
        assert!(message.push(bytes, &mut |_| ()).is_err());
    }
}
