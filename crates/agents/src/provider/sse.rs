//! An event stream, read as its bytes come.
//!
//! Promises: events do not depend on where the bytes were split; what is not UTF-8 is replaced, never fatal; an event has
//! a bound.
//! Must not know: what is in an event.

/// One event holds at most this: a server may send a whole file as the input of one tool call.
pub(super) const EVENT_BYTES_MAX: usize = 16 << 20;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SseEvent {
    pub kind: EventKind,
    pub data: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventKind {
    Message,
    /// Named `error`, or sent in a field `error:` as older llama.cpp servers do.
    Error,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooLarge;

#[derive(Debug)]
pub(super) struct SseReader {
    event_bytes_max: usize,
    /// The line that is not complete yet.
    line: Vec<u8>,
    /// The data lines of the event that is not complete yet, each with its line feed.
    data: Vec<u8>,
    kind: EventKind,
    /// A carriage return ended the last line: a line feed right after it belongs to it.
    after_return: bool,
    at_start: bool,
    saw: StreamContents,
}

/// What has been read so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamContents {
    Nothing,
    /// Lines that no event stream has, and no event.
    ForeignLines,
    Events,
}

impl Default for SseReader {
    fn default() -> Self {
        Self::bounded(EVENT_BYTES_MAX)
    }
}

impl SseReader {
    pub(super) fn bounded(event_bytes_max: usize) -> Self {
        Self {
            event_bytes_max,
            line: Vec::new(),
            data: Vec::new(),
            kind: EventKind::Message,
            after_return: false,
            at_start: true,
            saw: StreamContents::Nothing,
        }
    }

    /// Whether this is some other text than an event stream.
    pub(super) fn is_foreign(&self) -> bool {
        self.saw == StreamContents::ForeignLines
    }

    /// Adds the events that are complete with these bytes. After an error nothing more can be read.
    pub(super) fn read(
        &mut self,
        mut bytes: &[u8],
        events: &mut Vec<SseEvent>,
    ) -> Result<(), TooLarge> {
        while let Some(first) = bytes.first() {
            if std::mem::take(&mut self.after_return) && *first == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                return self.extend_line(bytes);
            };
            self.extend_line(&bytes[..end])?;
            self.after_return = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            self.end_line(events);
        }
        Ok(())
    }

    /// The stream is over: an event without the blank line after it counts too.
    pub(super) fn end(&mut self, events: &mut Vec<SseEvent>) {
        self.end_line(events);
        self.dispatch(events);
    }

    fn extend_line(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        if self.line.len() + self.data.len() + bytes.len() > self.event_bytes_max {
            return Err(TooLarge);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self, events: &mut Vec<SseEvent>) {
        let mut whole = std::mem::take(&mut self.line);
        let mut line = whole.as_slice();
        if std::mem::take(&mut self.at_start) {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.is_empty() {
            self.dispatch(events);
        } else {
            self.take_field(line);
        }
        whole.clear();
        self.line = whole;
    }

    fn take_field(&mut self, line: &[u8]) {
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = match colon {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => self.take_data(value),
            b"error" => {
                self.kind = EventKind::Error;
                self.take_data(value);
            }
            b"event" if value == b"error" => self.kind = EventKind::Error,
            b"event" => self.kind = EventKind::Message,
            // A comment has an empty name; ids and reconnection times are of no use here.
            b"" | b"id" | b"retry" => {}
            _ if self.saw == StreamContents::Nothing => self.saw = StreamContents::ForeignLines,
            _ => {}
        }
    }

    fn take_data(&mut self, value: &[u8]) {
        self.data.extend_from_slice(value);
        self.data.push(b'\n');
    }

    fn dispatch(&mut self, events: &mut Vec<SseEvent>) {
        let kind = std::mem::replace(&mut self.kind, EventKind::Message);
        let data = self.data.strip_suffix(b"\n").unwrap_or(&self.data);
        if !data.is_empty() {
            self.saw = StreamContents::Events;
            events.push(SseEvent { kind, data: String::from_utf8_lossy(data).into_owned() });
        }
        self.data.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read_in_pieces(stream: &[u8], size: usize) -> Vec<SseEvent> {
        let mut reader = SseReader::default();
        let mut events = Vec::new();
        for piece in stream.chunks(size) {
            reader.read(piece, &mut events).unwrap();
        }
        reader.end(&mut events);
        events
    }

    fn check(stream: &[u8], expected: &[&str]) {
        for size in [1, 2, 3, stream.len().max(1)] {
            let events = read_in_pieces(stream, size);
            let data: Vec<&str> = events.iter().map(|event| event.data.as_str()).collect();
            assert_eq!(data, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn lines_end_as_they_like() {
        check(b"data: a\n\ndata: b\n\n", &["a", "b"]);
        check(b"data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]);
        check(b"data: a\r\rdata: b\r\r", &["a", "b"]);
        check(b"data: a\r\n\ndata: b\n\r\n", &["a", "b"]);
    }

    #[test]
    fn data_lines_of_one_event_are_joined() {
        check(b"data: a\ndata: b\ndata:\ndata: c\n\n", &["a\nb\n\nc"]);
    }

    #[test]
    fn only_one_space_belongs_to_the_field() {
        check(b"data:a\n\ndata:  b \n\n", &["a", " b "]);
    }

    #[test]
    fn comments_other_fields_and_empty_events_are_passed_over() {
        check(
            b": keep-alive\n\nid: 1\nretry: 5\ndata: a\n: in between\n\n\n\ndata\n\ndata:\n\nevent: x\n\n",
            &["a"],
        );
    }

    #[test]
    fn the_last_event_needs_no_blank_line() {
        check(b"data: a\n\ndata: b", &["a", "b"]);
        check(b"data: a\n\ndata: b\n", &["a", "b"]);
    }

    #[test]
    fn a_byte_order_mark_is_passed_over_at_the_start_only() {
        check(b"\xEF\xBB\xBFdata: a\n\n", &["a"]);
        check(b"data: a\n\n\xEF\xBB\xBFdata: b\n\n", &["a"]);
    }

    #[test]
    fn invalid_utf_8_is_replaced() {
        check(b"data: a\xFFb\n\n", &["a\u{FFFD}b"]);
        check("data: ä😀\n\n".as_bytes(), &["ä😀"]);
    }

    #[test]
    fn errors_are_recognised_by_event_or_field() {
        let events = read_in_pieces(b"event: error\ndata: a\n\nerror: b\n\ndata: c\n\n", 1);
        let kinds: Vec<EventKind> = events.iter().map(|event| event.kind).collect();
        use EventKind::{Error, Message};
        assert_eq!(kinds, [Error, Error, Message]);
        assert_eq!(events[1].data, "b");
    }

    #[test]
    fn text_that_is_no_event_stream_is_recognised() {
        let is_foreign = |stream: &[u8]| {
            let mut reader = SseReader::default();
            let mut events = Vec::new();
            reader.read(stream, &mut events).unwrap();
            reader.end(&mut events);
            reader.is_foreign()
        };
        assert!(is_foreign(b"Welcome!\n\nThis is: no stream."));
        assert!(!is_foreign(b": keep-alive\n\n"));
        assert!(!is_foreign(b"data: a\n\nother: b\n\n"));
        assert!(!is_foreign(b"other: b\ndata: a\n\n"));
        assert!(!is_foreign(b""));
    }

    #[test]
    fn an_event_over_its_bound_ends_the_reading_after_those_before_it() {
        for size in [1, 100] {
            let mut reader = SseReader::bounded(10);
            let mut events = Vec::new();
            let stream = b"data: a\n\ndata: 345\ndata: 890\n\n";
            let read = stream.chunks(size).try_for_each(|piece| reader.read(piece, &mut events));
            assert_eq!(read, Err(TooLarge));
            assert_eq!(events.len(), 1);
        }
    }

    proptest! {
        #[test]
        fn any_split_of_any_bytes_gives_the_same_events(
            stream in proptest::collection::vec(
                proptest::sample::select(b"dataevnt:error \r\n\xEF\xBB\xBF\xC3\xA4x".to_vec()), 0..200),
            size in 1_usize..20,
        ) {
            let whole = read_in_pieces(&stream, stream.len().max(1));
            prop_assert_eq!(read_in_pieces(&stream, size), whole);
        }
    }
}
