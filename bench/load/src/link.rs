//! A non-blocking connection that keeps what the kernel would not take yet.

use mio::net::TcpStream;
use std::io::{self, ErrorKind, Read, Write};

pub struct Link {
    pub socket: TcpStream,
    pending: Vec<u8>,
}

pub enum Got {
    Bytes(usize),
    Nothing,
    End,
}

impl Link {
    pub fn new(socket: TcpStream) -> Link {
        Link { socket, pending: Vec::new() }
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

    /// Goes on with what is pending, when the connection is made or has room again.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let sent = write(&mut self.socket, &self.pending)?;
        self.pending.drain(..sent);
        Ok(())
    }

    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<Got> {
        loop {
            match self.socket.read(buffer) {
                Ok(0) => return Ok(Got::End),
                Ok(count) => return Ok(Got::Bytes(count)),
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
