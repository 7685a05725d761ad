//! JSON (RFC 8259) as bytes, checked as strictly as `JSON.parse` checks text: each function steps over one thing and
//! gives the place after it, or `None` where this is not plainly JSON. Bytes from 0x80 up are taken as they come inside
//! strings, and nowhere else. The twin of `packages/selector/src/json-bytes.ts`.

/// Nesting that is stepped over here; engines' own parsers give up sooner.
pub const DEPTH_MAX: usize = 512;

pub fn skip_space(body: &[u8], start: usize) -> usize {
    let mut at = start;
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = body.get(at) {
        at += 1;
    }
    at
}

/// A string's content is `start..end - 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text {
    /// The place after the closing quote.
    pub end: usize,
    pub has_escape: bool,
}

/// `start`: the byte after the opening quote.
pub fn skip_string(body: &[u8], start: usize) -> Option<Text> {
    let mut has_escape = false;
    let mut at = start;
    loop {
        at += plain_run(body.get(at..)?);
        match body.get(at)? {
            b'"' => return Some(Text { end: at + 1, has_escape }),
            b'\\' => at = skip_escape(body, at + 1)?,
            _ => return None,
        }
        has_escape = true;
    }
}

/// Any value. `start`: its first byte.
pub fn skip_value(body: &[u8], start: usize) -> Option<usize> {
    let mut open = Nesting::default();
    let mut at = start;
    loop {
        // Here a value begins.
        match *body.get(at)? {
            b'"' => at = skip_string(body, at + 1)?.end,
            b'{' => {
                at = skip_space(body, at + 1);
                if body.get(at) == Some(&b'}') {
                    at += 1;
                } else {
                    open.push(true)?;
                    at = skip_key(body, at)?;
                    continue;
                }
            }
            b'[' => {
                at = skip_space(body, at + 1);
                if body.get(at) == Some(&b']') {
                    at += 1;
                } else {
                    open.push(false)?;
                    continue;
                }
            }
            _ => at = skip_scalar(body, at)?,
        }
        // Here a value has ended.
        loop {
            let Some(is_object) = open.innermost() else { return Some(at) };
            at = skip_space(body, at);
            let next = *body.get(at)?;
            if next == b',' {
                at = skip_space(body, at + 1);
                if is_object {
                    at = skip_key(body, at)?;
                }
                break;
            }
            if next != if is_object { b'}' } else { b']' } {
                return None;
            }
            open.pop();
            at += 1;
        }
    }
}

/// The colon after a name, and the space on both sides.
pub fn skip_colon(body: &[u8], start: usize) -> Option<usize> {
    let at = skip_space(body, start);
    (body.get(at) == Some(&b':')).then(|| skip_space(body, at + 1))
}

/// A name, its colon, and space up to the value.
fn skip_key(body: &[u8], start: usize) -> Option<usize> {
    if body.get(start) != Some(&b'"') {
        return None;
    }
    skip_colon(body, skip_string(body, start + 1)?.end)
}

/// Which of the open brackets are braces, a bit each: small enough to start anew at every value.
#[derive(Default)]
struct Nesting {
    is_object: [u64; DEPTH_MAX / 64],
    depth: usize,
}

impl Nesting {
    fn push(&mut self, is_object: bool) -> Option<()> {
        let word = self.is_object.get_mut(self.depth / 64)?;
        let bit = 1 << (self.depth % 64);
        *word = if is_object { *word | bit } else { *word & !bit };
        self.depth += 1;
        Some(())
    }

    fn pop(&mut self) {
        self.depth -= 1;
    }

    fn innermost(&self) -> Option<bool> {
        let at = self.depth.checked_sub(1)?;
        Some(self.is_object[at / 64] >> (at % 64) & 1 == 1)
    }
}

/// Bytes before the first quote, backslash or control character.
fn plain_run(text: &[u8]) -> usize {
    let mut at = 0;
    // Names and short words end in their first words; only long text is worth blocks.
    for word in text.as_chunks::<8>().0.iter().take(NEAR_WORDS) {
        if let Some(stop) = stop_in(*word) {
            return at + stop;
        }
        at += 8;
    }
    if at == NEAR_WORDS * 8 {
        at += text[at..].as_chunks::<64>().0.iter().take_while(|block| !has_stop(block)).count() * 64;
    }
    for word in text[at..].as_chunks::<8>().0 {
        if let Some(stop) = stop_in(*word) {
            return at + stop;
        }
        at += 8;
    }
    at + text[at..].iter().take_while(|&&byte| byte >= 0x20 && byte != b'"' && byte != b'\\').count()
}

const NEAR_WORDS: usize = 4;

/// Where in eight bytes the first stop is. Of a byte b, b − 1 sets its top bit only for 0 (b − 0x20 below 0x20), or where
/// the byte below borrowed: and that one is then a stop itself, and first.
fn stop_in(word: [u8; 8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let bytes = u64::from_le_bytes(word);
    let quotes = bytes ^ (ONES * 0x22);
    let backslashes = bytes ^ (ONES * 0x5C);
    let controls = bytes.wrapping_sub(ONES * 0x20) & !bytes;
    let stops = controls | quotes.wrapping_sub(ONES) & !quotes | backslashes.wrapping_sub(ONES) & !backslashes;
    let stops = stops & (ONES << 7);
    (stops != 0).then(|| stops.trailing_zeros() as usize / 8)
}

/// As three minima, which the compiler takes of all bytes at once.
fn has_stop(block: &[u8; 64]) -> bool {
    let (mut control, mut quote, mut backslash) = (u8::MAX, u8::MAX, u8::MAX);
    for &byte in block {
        control = control.min(byte);
        quote = quote.min(byte ^ b'"');
        backslash = backslash.min(byte ^ b'\\');
    }
    control < 0x20 || quote == 0 || backslash == 0
}

/// `start`: the byte after the backslash.
fn skip_escape(body: &[u8], start: usize) -> Option<usize> {
    match body.get(start)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(start + 1),
        b'u' => body.get(start + 1..start + 5)?.iter().all(u8::is_ascii_hexdigit).then_some(start + 5),
        _ => None,
    }
}

fn skip_scalar(body: &[u8], start: usize) -> Option<usize> {
    let word: &[u8] = match body[start] {
        b't' => b"true",
        b'f' => b"false",
        b'n' => b"null",
        _ => return skip_number(body, start),
    };
    body[start..].starts_with(word).then_some(start + word.len())
}

fn skip_number(body: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    if body.get(at) == Some(&b'-') {
        at += 1;
    }
    at = if body.get(at) == Some(&b'0') { at + 1 } else { skip_digits(body, at)? };
    if body.get(at) == Some(&b'.') {
        at = skip_digits(body, at + 1)?;
    }
    if let Some(b'e' | b'E') = body.get(at) {
        at += 1;
        if let Some(b'+' | b'-') = body.get(at) {
            at += 1;
        }
        at = skip_digits(body, at)?;
    }
    Some(at)
}

/// One digit or more.
fn skip_digits(body: &[u8], start: usize) -> Option<usize> {
    let digits = body.get(start..)?.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (digits > 0).then_some(start + digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> bool {
        skip_value(text.as_bytes(), 0) == Some(text.len())
    }

    #[test]
    fn steps_over_every_kind_of_value() {
        for text in [
            "0",
            "-0",
            "12",
            "-1.5e+10",
            "1E9",
            "0.5",
            "true",
            "false",
            "null",
            r#""""#,
            r#""a\"\\\/\b\f\n\r\tA""#,
            "[]",
            "{}",
            "[ ]",
            "{ }",
            "[1,2 , [3]]",
            r#"{"a":{"b":[{}]} , "c" : "}]"}"#,
            "\"é — ✓\"",
        ] {
            assert!(whole(text), "{text}");
        }
    }

    #[test]
    fn refuses_what_json_refuses() {
        for text in [
            "",
            "01",
            "-",
            "1.",
            ".5",
            "1e",
            "+1",
            "tru",
            "nul",
            "True",
            "\"",
            "\"\\x\"",
            "\"\\u12g4\"",
            "\"\\u123",
            "\"a\nb\"",
            "[",
            "[1",
            "[1,",
            "[1,]",
            "[,1]",
            "[1 2]",
            "[1}",
            "{",
            "{\"a\"",
            "{\"a\":",
            "{\"a\":1",
            "{\"a\":1,}",
            "{a:1}",
            "{\"a\" 1}",
            "{\"a\":1]",
            "NaN",
            "Infinity",
            "'a'",
            "\u{feff}1",
            "\u{a0}1",
        ] {
            assert!(!whole(text), "{text}");
        }
    }

    #[test]
    fn nesting_ends_at_its_limit() {
        let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        assert!(whole(&nested(DEPTH_MAX)));
        assert!(!whole(&nested(DEPTH_MAX + 1)));
    }

    #[test]
    fn a_stop_is_found_wherever_it_stands() {
        for length in 0..300 {
            for stop in [b'"', b'\\', 0x1F, 0] {
                let mut text = vec![b'x'; 300];
                text[length] = stop;
                assert_eq!(plain_run(&text), length);
                assert_eq!(plain_run(&text[..length]), length);
            }
        }
        // Neighbours of the stops, below, above and with the top bit set, are none of them.
        let plain = [0x20, 0x21, 0x23, 0x5B, 0x5D, 0x7F, 0x80, 0x9F, 0xA2, 0xDC, 0xFF];
        for length in 0..300 {
            let text: Vec<u8> = (0..length).map(|i| plain[i * 7 % plain.len()]).collect();
            assert_eq!(plain_run(&text), length);
        }
    }
}
