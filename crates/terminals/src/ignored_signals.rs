//! The keys that interrupt a program work in a terminal also if this process was started with their signals ignored, as
//! `nohup` and scripts do with what they put in the background: what is ignored stays so in every program that is started.
//!
//! Promises: this process ignores them as before.
//! Must not know: who starts what.

use std::sync::Once;

use tokio::signal::unix::{SignalKind, signal};

/// Makes signals that keys send, and that this process ignores, ones that it handles by doing nothing: a handler is not
/// passed on to a program. To be called in a runtime, before one is started in a terminal.
pub(crate) fn undo_for_children() {
    static UNDONE: Once = Once::new();
    UNDONE.call_once(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        for kind in [SignalKind::interrupt(), SignalKind::quit()] {
            if is_ignored(&status, kind.as_raw_value())
                && let Err(error) = signal(kind)
            {
                // Programs that do not say themselves what they do with it will ignore it.
                debug_assert!(false, "{kind:?} cannot be handled: {error}");
            }
        }
    });
}

/// Whether `/proc/self/status` says that a signal is ignored. Where there is no such file nothing is known, and left as it is.
fn is_ignored(status: &str, number: i32) -> bool {
    let ignored = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let number = u32::try_from(number).unwrap_or_default().saturating_sub(1);
    ignored.is_some_and(|mask| mask.checked_shr(number).unwrap_or_default() & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_is_read() {
        let status = "Name:\tx\nSigIgn:\t0000000000001006\nSigCgt:\t0000000000000000\n";
        let ignored: Vec<i32> = (1..=64).filter(|it| is_ignored(status, *it)).collect();
        assert_eq!(ignored, [2, 3, 13]);
        assert!(!is_ignored("", 2));
    }
}
