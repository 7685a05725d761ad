//! What keeps a fault of ours from ending the process: every entry runs its work here.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `work`; a panic in it becomes an error with the panic's message.
///
/// # Errors
/// What `work` refuses, or the message of its panic.
pub fn guard<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    // No entry leaves half-written state behind: tables do not change once loaded, and outputs are written at the end.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let message = payload
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| payload.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        Err(format!("a fault in the addon: {message}"))
    })
}

#[cfg(test)]
mod tests {
    use super::guard;

    #[test]
    fn a_panic_becomes_an_error_and_the_next_call_works() {
        let nothing: &[u32] = &[];
        let outside = std::hint::black_box(3);
        let failed = guard(|| Ok(nothing[outside]));
        assert_eq!(failed, Err("a fault in the addon: index out of bounds: the len is 0 but the index is 3".into()));
        assert_eq!(guard(|| Ok(7)), Ok(7));
        assert_eq!(guard(|| -> Result<u32, String> { panic!("plain") }), Err("a fault in the addon: plain".into()));
    }

    #[test]
    fn a_refusal_passes_through() {
        assert_eq!(guard(|| -> Result<u32, String> { Err("too short".into()) }), Err("too short".into()));
    }
}
