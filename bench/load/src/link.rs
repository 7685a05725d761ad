//! A non-blocking connection that keeps what the kernel would not take yet.

use mio::event::Event;
use mio::net::TcpStream;
use std::io::{self, ErrorKind, Read, Write};

pub struct Link {
    pub socket: TcpStream,
    pending: Vec<u8>,
    /// The last read took all that the kernel had: epoll tells of what comes later, and to ask for it now is a system call
    /// for nothing.
    emptied: bool,
    /// The other side has ended it, which is read after the last bytes.
    ends: bool,
}

pub enum Got {
    Bytes(usize),
    Nothing,
    End,
}

impl Link {
    pub fn new(socket: TcpStream) -> Link {
        Link { socket, pending: Vec::new(), emptied: false, ends: false }
    }

    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.pending.is_empty() {
            self.pending.extend_from_slice(bytes);
            return self.flush();
        }
        let sent = write(&mut self.socket, bytes)?;
        self.pending.extend_from_slice(&bytes[sent..]);
        Ok(())
    }

    /// Takes in what epoll says: there may be something to read, and room to write.
    pub fn wake(&mut self, event: &Event) -> io::Result<()> {
        self.emptied = false;
        self.ends |= event.is_read_closed();
        if event.is_writable() { self.flush() } else { Ok(()) }
    }

    /// Goes on with what is pending, when the connection is made or has room again.
    fn flush(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let sent = write(&mut self.socket, &self.pending)?;
        self.pending.drain(..sent);
        Ok(())
    }

    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<Got> {
        // The connection's end may stand behind the last bytes without a word of its own.
        if self.emptied && !self.ends {
            return Ok(Got::Nothing);
        }
        loop {
            match self.socket.read(buffer) {
                Ok(0) => return Ok(Got::End),
                Ok(count) => {
                    self.emptied = count < buffer.len();
                    return Ok(Got::Bytes(count));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Got::Nothing),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn write(socket: &mut TcpStream, bytes: &[u8]) -> io::Result<usize> {
    let mut sent = 0;
    while sent < bytes.len() {
        match socket.write(&bytes[sent..]) {
            Ok(count) => sent += count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected) => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mio::{Events, Interest, Poll, Token};
    use std::net::{SocketAddr, TcpListener};
    use std::time::Duration;

    #[test]
    fn reads_the_end_that_stands_behind_the_last_bytes() {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut other, _) = listener.accept().unwrap();
        other.write_all(b"last").unwrap();
        drop(other);
        let mut poll = Poll::new().unwrap();
        let mut link = Link::new(socket);
        poll.registry().register(&mut link.socket, Token(0), Interest::READABLE | Interest::WRITABLE).unwrap();
        let mut events = Events::with_capacity(4);
        let mut buffer = [0; 64];
        let mut read = Vec::new();
        loop {
            poll.poll(&mut events, Some(Duration::from_secs(10))).unwrap();
            assert!(!events.is_empty(), "no word of the connection's end, after {read:?}");
            for event in &events {
                link.wake(event).unwrap();
                loop {
                    match link.read(&mut buffer).unwrap() {
                        Got::Bytes(count) => read.extend_from_slice(&buffer[..count]),
                        Got::Nothing => break,
                        Got::End => return assert_eq!(read, b"last"),
                    }
                }
            }
        }
    }
}
