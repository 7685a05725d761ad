//! A clock and an alarm finer than the millisecond that epoll waits in.

use mio::unix::SourceFd;
use mio::{Interest, Poll, Token};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime, timerfd_create,
    timerfd_settime,
};
use std::io;

/// Nanoseconds of the machine's monotonic clock: the same for each process.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

pub struct Alarm {
    fd: OwnedFd,
    /// When it rings next, or rang last.
    armed_ns: u64,
}

impl Alarm {
    /// Wakes `poll` with `token`.
    pub fn new(poll: &Poll, token: Token) -> io::Result<Alarm> {
        let fd = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        poll.registry().register(&mut SourceFd(&fd.as_raw_fd()), token, Interest::READABLE)?;
        Ok(Alarm { fd, armed_ns: 0 })
    }

    /// Rings once at `at_ns` or before it, at once if that has passed. An earlier moment that it was set to stands: who is
    /// woken looks at what is due anyway, and each change is a system call.
    pub fn set(&mut self, at_ns: u64, now_ns: u64) -> io::Result<()> {
        if self.armed_ns > now_ns && self.armed_ns <= at_ns {
            return Ok(());
        }
        self.armed_ns = at_ns;
        let it_value = Timespec { tv_sec: (at_ns / 1_000_000_000) as i64, tv_nsec: (at_ns % 1_000_000_000) as i64 };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        timerfd_settime(&self.fd, TimerfdTimerFlags::ABSTIME, &Itimerspec { it_interval, it_value })?;
        Ok(())
    }
}
