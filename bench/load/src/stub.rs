//! An engine that answers at once: a chat completion of 1 KB, or events at the pace that the request asks for.

use crate::link::{Got, Link};
use crate::marker::{Pace, event, stamp};
use crate::message::{Kind, Message};
use crate::timer::{Alarm, now_ns};
use mio::event::Event;
use mio::net::TcpListener;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Read};
use std::net::SocketAddr;

const LISTENER: Token = Token(usize::MAX);
const ALARM: Token = Token(usize::MAX - 1);
const INPUT: Token = Token(usize::MAX - 2);
/// A mark stands in the beginning of a body, whichever way a router has put it together again.
const MARK_WITHIN: usize = 2048;

/// Serves until the standard input ends.
pub fn serve() -> io::Result<()> {
    Stub::listen()?.run()
}

struct Stub {
    poll: Poll,
    listener: TcpListener,
    alarm: Alarm,
    peers: Vec<Option<Peer>>,
    free: Vec<usize>,
    /// When the next event of a peer's stream is due; `turn` tells whether it is still the same stream.
    due: BinaryHeap<Reverse<(u64, usize, u64)>>,
    turns: u64,
    event: Vec<u8>,
    stream_end: Vec<u8>,
    whole: Vec<u8>,
}

struct Peer {
    link: Link,
    request: Message,
    body: Vec<u8>,
    stream: Option<Stream>,
}

struct Stream {
    turn: u64,
    pace: Pace,
    left: u32,
    next_ns: u64,
}

impl Stub {
    fn listen() -> io::Result<Stub> {
        let poll = Poll::new()?;
        let mut listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        poll.registry().register(&mut SourceFd(&0), INPUT, Interest::READABLE)?;
        println!("{}", listener.local_addr()?);
        let alarm = Alarm::new(&poll, ALARM)?;
        Ok(Stub {
            poll,
            listener,
            alarm,
            peers: Vec::new(),
            free: Vec::new(),
            due: BinaryHeap::new(),
            turns: 0,
            event: chunk(&event()),
            stream_end: stream_end(),
            whole: json_answer(&completion()),
        })
    }

    fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(1024);
        let mut buffer = vec![0; 64 << 10];
        loop {
            self.poll.poll(&mut events, None)?;
            for each in &events {
                match each.token() {
                    LISTENER => self.accept()?,
                    ALARM => {}
                    INPUT => {
                        if io::stdin().read(&mut [0; 64])? == 0 {
                            return Ok(());
                        }
                    }
                    Token(at) => {
                        if self.serve_peer(at, each, &mut buffer).is_err() {
                            self.drop_peer(at);
                        }
                    }
                }
            }
            self.send_due_events()?;
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        loop {
            let (mut socket, _) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            socket.set_nodelay(true)?;
            let at = self.free.pop().unwrap_or(self.peers.len());
            self.poll.registry().register(&mut socket, Token(at), Interest::READABLE | Interest::WRITABLE)?;
            let request = Message::new(Kind::Request);
            let peer = Peer { link: Link::new(socket), request, body: Vec::new(), stream: None };
            if at == self.peers.len() {
                self.peers.push(Some(peer));
            } else {
                self.peers[at] = Some(peer);
            }
        }
    }

    fn drop_peer(&mut self, at: usize) {
        if self.peers[at].take().is_some() {
            self.free.push(at);
        }
    }

    fn serve_peer(&mut self, at: usize, event: &Event, buffer: &mut [u8]) -> io::Result<()> {
        let Some(peer) = &mut self.peers[at] else { return Ok(()) };
        peer.link.wake(event)?;
        loop {
            let Some(peer) = &mut self.peers[at] else { return Ok(()) };
            let count = match peer.link.read(buffer)? {
                Got::Bytes(count) => count,
                Got::Nothing => return Ok(()),
                Got::End => return Err(io::ErrorKind::UnexpectedEof.into()),
            };
            let body = &mut peer.body;
            let keep = |more: &[u8]| {
                let room = MARK_WITHIN.saturating_sub(body.len());
                body.extend_from_slice(&more[..more.len().min(room)]);
            };
            // None of those that stand before it sends a request before it has the answer to the last.
            peer.request.push(&buffer[..count], &mut { keep }).map_err(|bad| io::Error::other(bad.0))?;
            if peer.request.is_done() {
                self.answer(at)?;
            }
        }
    }

    fn answer(&mut self, at: usize) -> io::Result<()> {
        let Some(peer) = &mut self.peers[at] else { return Ok(()) };
        let request = std::mem::replace(&mut peer.request, Message::new(Kind::Request));
        let pace = Pace::find(&peer.body);
        peer.body.clear();
        match pace {
            _ if !request.target.starts_with("POST /v1/chat/") => peer.link.send(&json_answer(ABOUT)),
            None => peer.link.send(&self.whole),
            Some(pace) => {
                self.turns += 1;
                peer.link.send(STREAM_HEAD)?;
                peer.stream = Some(Stream { turn: self.turns, pace, left: pace.events, next_ns: now_ns() });
                self.send_event(at)
            }
        }
    }

    fn send_event(&mut self, at: usize) -> io::Result<()> {
        let Some(Peer { link, stream, .. }) = &mut self.peers[at] else { return Ok(()) };
        let Some(under_way) = stream else { return Ok(()) };
        stamp(&mut self.event, now_ns());
        link.send(&self.event)?;
        under_way.left -= 1;
        if under_way.left == 0 {
            *stream = None;
            return link.send(&self.stream_end);
        }
        under_way.next_ns += under_way.pace.every_ms * 1_000_000;
        self.due.push(Reverse((under_way.next_ns, at, under_way.turn)));
        Ok(())
    }

    fn send_due_events(&mut self) -> io::Result<()> {
        while let Some(&Reverse((due_ns, at, turn))) = self.due.peek() {
            let now = now_ns();
            if due_ns > now {
                return self.alarm.set(due_ns, now);
            }
            self.due.pop();
            let peer = self.peers[at].as_ref();
            let is_same = peer.and_then(|peer| peer.stream.as_ref()).is_some_and(|stream| stream.turn == turn);
            if is_same && self.send_event(at).is_err() {
                self.drop_peer(at);
            }
        }
        Ok(())
    }
}

/// What routers ask an engine about itself: health, models, sizes. One answer has what each looks for.
const ABOUT: &str = r#"{"object":"list","data":[{"id":"m","object":"model","created":1,"owned_by":"stub"}],"status":"ok","model_path":"m","model_id":"m","served_model_name":"m","tp_size":1,"dp_size":1}"#;

const STREAM_HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n";

/// A finish reason and the terminator, each an event, and the last chunk.
fn stream_end() -> Vec<u8> {
    let finish = "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\
                  \"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    [chunk(finish.as_bytes()), chunk(b"data: [DONE]\n\n"), chunk(b"")].concat()
}

fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// A chat completion of about 1 KB.
fn completion() -> String {
    let words = "word ".repeat(150);
    format!(
        "{{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion\",\"created\":1,\"model\":\"m\",\"choices\":[{{\"index\":0,\
         \"message\":{{\"role\":\"assistant\",\"content\":\"{words}\"}},\"finish_reason\":\"stop\"}}],\
         \"usage\":{{\"prompt_tokens\":200,\"completion_tokens\":150,\"total_tokens\":350}}}}"
    )
}

fn json_answer(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len())
        .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_answers_are_well_framed() {
        let stream = [STREAM_HEAD, &chunk(&event()), &stream_end()].concat();
        for bytes in [json_answer(&completion()), json_answer(ABOUT), stream] {
            let mut message = Message::new(Kind::Answer);
            let used = message.push(&bytes, &mut |_| ()).unwrap();
            assert!(message.is_done() && used == bytes.len(), "{}", String::from_utf8_lossy(&bytes));
        }
    }

    #[test]
    fn its_whole_answer_is_a_kilobyte() {
        let bytes = completion().len();
        assert!((960..=1100).contains(&bytes), "{bytes}");
    }
}
