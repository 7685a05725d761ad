//! How a request asks the stub for a stream: by a mark in its prompt, since routers look the model's name up and may drop
//! headers. And how an event says when it was sent.

/// One event at once and then one every so many milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    pub every_ms: u64,
    pub events: u32,
}

impl Pace {
    /// `20x200`: 200 events, 20 ms apart.
    pub fn parse(text: &str) -> Option<Pace> {
        let (every, events) = text.split_once('x')?;
        let pace = Pace { every_ms: every.parse().ok()?, events: events.parse().ok()? };
        (pace.events > 0).then_some(pace)
    }

    pub fn mark(self) -> String {
        format!("@@{}x{}@", self.every_ms, self.events)
    }

    /// The mark in a request's body; only its beginning is looked at.
    pub fn find(body: &[u8]) -> Option<Pace> {
        // Most bodies have none, which the library's search of one byte finds out ten times as fast.
        if !body.contains(&b'@') {
            return None;
        }
        let from = find(body, b"@@")? + 2;
        let rest = &body[from..];
        let to = find(rest, b"@")?;
        Pace::parse(std::str::from_utf8(&rest[..to]).ok()?)
    }
}

/// The stamp is the text of an event, so that one event differs from the next where those of real engines do.
const SENT: &[u8] = b"\"content\":\" at ";
/// Digits of a stamp: the same bytes in each event, whatever the time.
const DIGITS: usize = 20;

/// An event of a chat stream whose stamp is still to be written.
pub fn event() -> Vec<u8> {
    let stamp = "0".repeat(DIGITS);
    let text = format!(
        "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\
         \"choices\":[{{\"index\":0,\"delta\":{{\"content\":\" at {stamp}\"}},\"finish_reason\":null}}]}}\n\n"
    );
    text.into_bytes()
}

/// Writes the time into an event.
pub fn stamp(event: &mut [u8], now_ns: u64) {
    if let Some(at) = find(event, SENT) {
        let from = at + SENT.len();
        event[from..from + DIGITS].copy_from_slice(format!("{now_ns:020}").as_bytes());
    }
}

/// Calls `found` with each stamp in `bytes`; gives back how many of the bytes are done with: the rest may hold a part of one.
pub fn stamps(bytes: &[u8], mut found: impl FnMut(u64)) -> usize {
    let mut done = 0;
    while let Some(at) = find(&bytes[done..], SENT) {
        let from = done + at + SENT.len();
        let Some(digits) = bytes.get(from..from + DIGITS) else {
            return done + at;
        };
        if let Some(sent_ns) = std::str::from_utf8(digits).ok().and_then(|text| text.parse().ok()) {
            found(sent_ns);
        }
        done = from + DIGITS;
    }
    done.max(bytes.len().saturating_sub(SENT.len()))
}

pub fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    let (&first, rest) = what.split_first()?;
    let mut from = 0;
    while let Some(at) = bytes[from..].iter().position(|&byte| byte == first) {
        let start = from + at;
        if bytes[start + 1..].starts_with(rest) {
            return Some(start);
        }
        from = start + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_its_own_mark() {
        let pace = Pace { every_ms: 20, events: 200 };
        assert_eq!(Pace::find(format!("{{\"x\":\"a@b {} c\"}}", pace.mark()).as_bytes()), Some(pace));
        assert_eq!(Pace::find(b"@@ nothing"), None);
        assert_eq!(Pace::parse("20x0"), None);
    }

    #[test]
    fn reads_each_stamp_once_wherever_the_bytes_are_cut() {
        let mut stream = Vec::new();
        for ns in [7, 8_000_000_000, 9] {
            let mut one = event();
            stamp(&mut one, ns);
            stream.extend(one);
        }
        for cut in 0..stream.len() {
            let mut seen = Vec::new();
            let mut rest = stream[..cut].to_vec();
            let done = stamps(&rest, |ns| seen.push(ns));
            rest.drain(..done);
            rest.extend(&stream[cut..]);
            stamps(&rest, |ns| seen.push(ns));
            assert_eq!(seen, [7, 8_000_000_000, 9], "cut at {cut}");
        }
    }
}
