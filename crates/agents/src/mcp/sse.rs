//! Counts the bytes of each event of an event stream, before they are kept.
//!
//! Promises: an event over the bound is noticed before more than that is in memory.
//! Must not know: what is in an event.

/// Counts one stream.
#[derive(Debug)]
pub(super) struct EventCounter {
    event_bytes_max: usize,
    event: usize,
    line: usize,
    /// A carriage return ended the last line: a line feed right after it belongs to it.
    after_return: bool,
}

/// An event is larger than it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of more than {0} bytes")]
pub(super) struct EventTooLarge(usize);

impl EventCounter {
    pub(super) fn new(event_bytes_max: usize) -> Self {
        Self { event_bytes_max, event: 0, line: 0, after_return: false }
    }

    pub(super) fn count(&mut self, bytes: &[u8]) -> Result<(), EventTooLarge> {
        for byte in bytes {
            let after_return = std::mem::replace(&mut self.after_return, *byte == b'\r');
            match byte {
                b'\n' if after_return => {}
                b'\n' | b'\r' => {
                    if self.line == 0 {
                        self.event = 0;
                    }
                    self.line = 0;
                }
                _ => {
                    self.line += 1;
                    self.event += 1;
                    if self.event > self.event_bytes_max {
                        return Err(EventTooLarge(self.event_bytes_max));
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_counted_one_by_one_whatever_ends_their_lines() {
        for end in ["\n", "\r", "\r\n"] {
            let event = format!("data: 12{end}data: 34{end}{end}");
            let mut counter = EventCounter::new(16);
            for _ in 0..3 {
                assert_eq!(counter.count(event.as_bytes()), Ok(()), "{end:?}");
            }
            let large = format!("data: 12{end}data: 345{end}");
            assert_eq!(counter.count(large.as_bytes()), Err(EventTooLarge(16)));
        }
    }
}
