//! The generator: one thread, one connection for each answer under way, and none opened while another is idle.

use crate::cli::Plan;
use crate::link::{Got, Link};
use crate::marker::stamps;
use crate::peer::Peer;
use crate::report::Report;
use crate::request::Requests;
use crate::timer::{Alarm, now_ns};
use crate::watch::{Reading, anonymous_bytes};
use mio::event::Event;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use std::io;

const ALARM: Token = Token(usize::MAX);
/// An answer that has not begun by then is an error.
const PATIENCE_NS: u64 = 30_000_000_000;
const LOOK_EVERY_NS: u64 = 1_000_000_000;
/// So many failures one after the other with nothing in between: what is measured is not there.
const HOPELESS: u64 = 1000;

/// Runs the plan to its end. Fails when nothing answers, or a watched process is not there.
pub fn drive(plan: &Plan) -> io::Result<Report> {
    Drive::new(plan)?.run()
}

struct Drive<'a> {
    plan: &'a Plan,
    poll: Poll,
    alarm: Alarm,
    requests: Requests,
    peers: Vec<Peer>,
    idle: Vec<usize>,
    report: Report,
    start_ns: u64,
    /// Of the window; until it begins nothing is counted.
    window_ns: Option<u64>,
    before: Option<Reading>,
    /// Open loop: when the next request is due.
    next_ns: u64,
    /// Closed loop: connections that have had a first byte.
    awake: usize,
    failed_in_a_row: u64,
    /// When to look again for answers that are overdue.
    next_look_ns: u64,
}

impl<'a> Drive<'a> {
    fn new(plan: &'a Plan) -> io::Result<Drive<'a>> {
        let poll = Poll::new()?;
        let alarm = Alarm::new(&poll, ALARM)?;
        let idle_bytes = plan.watch.iter().map(|&pid| anonymous_bytes(pid)).collect::<Result<_, _>>()?;
        let now = now_ns();
        Ok(Drive {
            plan,
            poll,
            alarm,
            requests: Requests::new(plan.to, plan.body, plan.stream),
            peers: Vec::new(),
            idle: Vec::new(),
            report: Report { pids: plan.watch.clone(), idle_bytes, ..Report::default() },
            start_ns: now,
            window_ns: None,
            before: None,
            next_ns: now,
            awake: 0,
            failed_in_a_row: 0,
            next_look_ns: now + LOOK_EVERY_NS,
        })
    }

    fn run(mut self) -> io::Result<Report> {
        let mut events = Events::with_capacity(1024);
        let mut buffer = vec![0; 64 << 10];
        loop {
            let now = now_ns();
            self.send_due(now)?;
            if let Some(began) = self.window_ns {
                if now >= began + self.plan.window.as_nanos() as u64 {
                    return self.end(now - began);
                }
            } else if self.is_warm(now) {
                self.window_ns = Some(now);
                self.before = Some(Reading::take(&self.plan.watch)?);
            }
            self.give_up_late(now)?;
            let wake_ns = self.next_wake(now);
            self.alarm.set(wake_ns, now)?;
            self.poll.poll(&mut events, None)?;
            for each in &events {
                if each.token() != ALARM {
                    self.serve(each, &mut buffer)?;
                }
            }
        }
    }

    fn give_up_late(&mut self, now: u64) -> io::Result<()> {
        if now < self.next_look_ns {
            return Ok(());
        }
        self.next_look_ns = now + LOOK_EVERY_NS;
        for at in 0..self.peers.len() {
            if self.peers[at].is_late(now, PATIENCE_NS) {
                self.fail(at, "no answer began in time")?;
            }
        }
        Ok(())
    }

    fn is_warm(&self, now: u64) -> bool {
        let all_awake = self.plan.rate.is_some() || self.awake >= self.plan.connections;
        now >= self.start_ns + self.plan.warm.as_nanos() as u64 && all_awake
    }

    /// The latest moment to look again: something is due, the window's edge, or a tenth of a second.
    fn next_wake(&self, now: u64) -> u64 {
        let mut wake = now + 100_000_000;
        if self.plan.rate.is_some() || self.peers.len() < self.plan.connections {
            wake = wake.min(self.next_ns.max(now + 1));
        }
        if let Some(began) = self.window_ns {
            wake = wake.min(began + self.plan.window.as_nanos() as u64);
        }
        wake
    }

    /// Open loop: what is due. Closed loop: connections that the ramp lets open.
    fn send_due(&mut self, now: u64) -> io::Result<()> {
        let Some(rate) = self.plan.rate else {
            while self.peers.len() < self.plan.connections && self.next_ns <= now {
                self.peers.push(Peer::new());
                self.send(self.peers.len() - 1)?;
                self.next_ns += (1e9 / self.plan.ramp) as u64;
            }
            return Ok(());
        };
        while self.next_ns <= now {
            if self.window_ns.is_some() {
                self.report.late_ns.push(now_ns() - self.next_ns);
            }
            self.next_ns += (1e9 / rate) as u64;
            let at = self.idle.pop().unwrap_or_else(|| {
                self.peers.push(Peer::new());
                self.peers.len() - 1
            });
            self.send(at)?;
        }
        Ok(())
    }

    fn send(&mut self, at: usize) -> io::Result<()> {
        let peer = &mut self.peers[at];
        if peer.link.is_none() {
            let mut socket = TcpStream::connect(self.plan.to)?;
            socket.set_nodelay(true)?;
            self.poll.registry().register(&mut socket, Token(at), Interest::READABLE | Interest::WRITABLE)?;
            peer.link = Some(Link::new(socket));
            self.report.opened += u64::from(self.window_ns.is_some());
        }
        peer.send(self.requests.next()).or_else(|error| self.fail(at, &error.to_string()))
    }

    fn serve(&mut self, event: &Event, buffer: &mut [u8]) -> io::Result<()> {
        let at = event.token().0;
        let Some(link) = &mut self.peers[at].link else { return Ok(()) };
        if let Err(error) = link.wake(event) {
            return self.fail(at, &error.to_string());
        }
        loop {
            let Some(link) = &mut self.peers[at].link else { return Ok(()) };
            match link.read(buffer) {
                Ok(Got::Nothing) => return Ok(()),
                Ok(Got::Bytes(count)) => self.read(at, &buffer[..count])?,
                Ok(Got::End) => return self.ended(at),
                Err(error) => return self.fail(at, &error.to_string()),
            }
        }
    }

    fn read(&mut self, at: usize, bytes: &[u8]) -> io::Result<()> {
        let now = now_ns();
        let counted = self.window_ns.is_some();
        let peer = &mut self.peers[at];
        if !peer.waits {
            return self.fail(at, "bytes that no request asked for");
        }
        if !peer.had_byte {
            peer.had_byte = true;
            if counted && Some(peer.sent_ns) >= self.window_ns {
                self.report.first_byte_ns.push(now - peer.sent_ns);
            }
        }
        let rest = &mut peer.rest;
        let is_stream = self.plan.stream.is_some();
        let pushed = peer.answer.push(bytes, &mut |more| {
            if is_stream {
                rest.extend_from_slice(more);
            }
        });
        let done = stamps(rest, |sent_ns| {
            if !peer.ever_awake {
                peer.ever_awake = true;
                self.awake += 1;
            }
            if counted {
                self.report.events += 1;
                self.report.event_ns.push(now.saturating_sub(sent_ns));
            }
        });
        rest.drain(..done);
        if let Err(bad) = pushed {
            return self.fail(at, bad.0);
        }
        if peer.answer.is_done() { self.finish(at) } else { Ok(()) }
    }

    /// A whole answer is there.
    fn finish(&mut self, at: usize) -> io::Result<()> {
        let peer = &mut self.peers[at];
        if peer.answer.status != 200 {
            let status = peer.answer.status;
            return self.fail(at, &format!("status {status}"));
        }
        if !peer.ever_awake {
            peer.ever_awake = true;
            self.awake += 1;
        }
        self.failed_in_a_row = 0;
        self.report.requests += u64::from(self.window_ns.is_some());
        if !peer.answer.keeps_alive {
            peer.link = None;
        }
        self.go_on(at)
    }

    fn ended(&mut self, at: usize) -> io::Result<()> {
        let peer = &mut self.peers[at];
        if !peer.waits {
            // Idle, and closed by the other side: the next request opens another.
            peer.link = None;
            return Ok(());
        }
        if peer.answer.ends_by_close() {
            self.finish(at)
        } else {
            self.fail(at, "the connection ended before the answer")
        }
    }

    fn fail(&mut self, at: usize, why: &str) -> io::Result<()> {
        self.failed_in_a_row += 1;
        if self.failed_in_a_row > HOPELESS {
            return Err(io::Error::other(format!("nothing works: {why}")));
        }
        if self.window_ns.is_some() {
            self.report.requests += 1;
            self.report.failed(why);
        }
        self.peers[at].link = None;
        self.go_on(at)
    }

    fn go_on(&mut self, at: usize) -> io::Result<()> {
        self.peers[at].waits = false;
        if self.plan.rate.is_none() {
            return self.send(at);
        }
        self.idle.push(at);
        Ok(())
    }

    fn end(mut self, elapsed_ns: u64) -> io::Result<Report> {
        let after = Reading::take(&self.plan.watch)?;
        self.report.elapsed_ns = elapsed_ns;
        self.report.used = self.before.as_ref().map(|before| after.since(before));
        self.report.end_bytes = self.plan.watch.iter().map(|&pid| anonymous_bytes(pid)).collect::<Result<_, _>>()?;
        self.report.open = self.peers.iter().filter(|peer| peer.waits).count();
        Ok(self.report)
    }
}
