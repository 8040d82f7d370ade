//! What is told of a terminal: a little as it came, of much a drawing.

use super::*;

struct Reader {
    coalescer: Coalescer,
    waiting: WaitingOutput,
    now: Instant,
}

impl Reader {
    fn new() -> Self {
        let size = TerminalSize::clamped(40, 10);
        Self {
            coalescer: Coalescer::new("n".to_owned(), size),
            waiting: WaitingOutput::default(),
            now: Instant::now(),
        }
    }

    fn print(&mut self, text: &str) {
        let told = self.coalescer.read(text.as_bytes(), self.now, 1_000);
        self.coalescer.queue(told, self.now, &mut self.waiting);
        self.coalescer.catch_up(self.now, &mut self.waiting);
    }

    fn wait(&mut self, ms: u64) -> Vec<TerminalEvent> {
        self.now += Duration::from_millis(ms);
        self.coalescer.catch_up(self.now, &mut self.waiting);
        self.waiting.take()
    }
}

fn text_of(output: &[TerminalEvent]) -> String {
    let texts = output.iter().map(|output| match output {
        TerminalEvent::Data(text) => text.as_str(),
        _ => "",
    });
    texts.collect()
}

#[test]
fn a_little_is_told_as_it_came() {
    let mut reader = Reader::new();
    reader.print("one ");
    reader.print("two\x1b]2;t\x07");
    let title = TerminalEvent::Title("t".to_owned());
    let output = reader.wait(0);
    assert!(output.contains(&title));
    assert_eq!(text_of(&output), "one two\x1b]2;t\x07");
}

#[test]
fn of_too_much_the_screen_is_drawn_and_memory_is_bounded() {
    let mut reader = Reader::new();
    let mut seen = ScreenModel::new(TerminalSize::clamped(40, 10));
    let mut told = 0;
    for line in 0..400_000u32 {
        reader.print(&format!("\x1b[32mline {line}\x1b[0m\r\n"));
        assert!(reader.waiting.bytes <= WAITING_BYTES_MAX + 64 * 1_024);
        if line % 50_000 == 0 {
            let output = reader.wait(7);
            told += text_of(&output).len();
            seen.process(text_of(&output).as_bytes());
        }
    }
    for _ in 0..2 {
        let output = reader.wait(200);
        told += text_of(&output).len();
        seen.process(text_of(&output).as_bytes());
    }
    assert!(told < 600_000, "{told}");
    assert_eq!(seen.contents(), reader.coalescer.screen.contents());
    assert!(seen.contents().contains("line 399999"));
}

#[test]
fn a_reader_that_takes_all_at_once_gets_no_more() {
    let mut reader = Reader::new();
    let line = "x".repeat(1_000);
    let mut told = 0;
    // A second in which ten megabytes are printed.
    for _ in 0..10_000 {
        reader.now += Duration::from_micros(100);
        reader.print(&line);
        told += text_of(&reader.wait(0)).len();
    }
    assert!(told < 2_000_000, "{told}");
    assert_eq!(text_of(&reader.wait(2_000)).len(), reader.coalescer.screen.repaint().len());
    reader.print("short");
    assert_eq!(text_of(&reader.wait(0)), "short");
}

#[test]
fn what_is_told_between_two_clearings_is_bounded() {
    let mut reader = Reader::new();
    reader.print("\x1b]633;n;C;yes\x07");
    let (mut since_cleared, mut clearings) = (0, 0);
    for line in 0..300_000u32 {
        reader.print(&format!("line {line} of many that are told one by one\r\n"));
        for output in reader.wait(50) {
            match output {
                TerminalEvent::Data(text) => since_cleared += text.len(),
                TerminalEvent::Cleared => (since_cleared, clearings) = (0, clearings + 1),
                TerminalEvent::CommandStarted { id, line, at } => {
                    assert_eq!((id.as_str(), line.as_str(), at), ("c1", "yes", 1_000));
                }
                TerminalEvent::CommandDetection => {}
                other => panic!("{other:?}"),
            }
        }
        assert!(since_cleared < 4 << 20);
    }
    assert!(clearings >= 3);
}

#[test]
fn commands_are_told_with_their_output_between() {
    let mut reader = Reader::new();
    reader.print("\x1b]633;n;A\x07$ ls\r\n\x1b]633;n;C;ls\x07a b\r\n");
    reader.now += Duration::from_millis(5);
    reader.print("\x1b]633;n;D;2\x07\x1b]633;n;P;/x\x07$ \x1b]633;n;D;2\x07\x1b]633;n;P;/x\x07");
    let data = |text: &str| TerminalEvent::Data(text.to_owned());
    assert_eq!(
        reader.wait(0),
        [
            TerminalEvent::CommandDetection,
            data("$ ls\r\n"),
            TerminalEvent::CommandStarted { id: "c1".to_owned(), line: "ls".to_owned(), at: 1_000 },
            data("a b\r\n"),
            TerminalEvent::CommandFinished {
                id: "c1".to_owned(),
                exit_code: Some(2),
                duration: Duration::from_millis(5)
            },
            TerminalEvent::Directory("/x".to_owned()),
            data("$ "),
        ]
    );
}

#[test]
fn the_end_of_a_long_output_belongs_to_its_command() {
    let mut reader = Reader::new();
    reader.print("\x1b]633;n;C;seq\x07");
    for line in 0..20_000 {
        reader.print(&format!("line {line}\r\n"));
    }
    assert!(reader.coalescer.is_behind());
    reader.print("\x1b]633;n;D;0\x07$ ");
    let output = reader.wait(0);
    let [.., TerminalEvent::Data(drawn), TerminalEvent::CommandFinished { .. }, _] =
        output.as_slice()
    else {
        panic!("{output:?}");
    };
    assert!(drawn.contains("line 19999"));
}

#[test]
fn the_last_words_are_told_whole() {
    let mut reader = Reader::new();
    reader.coalescer.read(b"", reader.now, 0);
    let told = reader.coalescer.read(b"\x1b]633;n;C;x\x07cut \xe2\x82", reader.now, 0);
    reader.coalescer.queue(told, reader.now, &mut reader.waiting);
    let end = CommandEnd::Exited(3);
    reader.coalescer.finish(end, reader.now, &mut reader.waiting);
    let output = reader.waiting.take();
    assert_eq!(text_of(&output), "cut \u{fffd}");
    assert_eq!(output.last(), Some(&TerminalEvent::Ended(end)));
    let finished =
        |output: &&TerminalEvent| matches!(output, TerminalEvent::CommandFinished { .. });
    assert_eq!(output.iter().filter(finished).count(), 1);
}

/// Sequences, characters of all lengths and bytes that are no text.
const ODD: &[u8] = b"a\xff\xe2\x82\xac\xe2\x82\xf0\x9f\x98\x80\xf0\x9f\x1b[31mred\xc3\x1b[0m\xc0\xafz\x1b]0;t\xffi\xe2\x07\x80\xed\xa0\x80\xf5end\xe6\xbc";

fn finish(reader: &mut Reader, seen: &mut ScreenModel) -> String {
    let end = CommandEnd::Exited(0);
    let told = reader.waiting.take();
    seen.process(text_of(&told).as_bytes());
    reader.coalescer.finish(end, reader.now, &mut reader.waiting);
    let last = reader.waiting.take();
    seen.process(text_of(&last).as_bytes());
    text_of(&told) + &text_of(&last)
}

#[test]
fn bytes_that_are_no_text_are_the_same_however_they_are_cut() {
    let told_of = |cuts: &[&[u8]]| {
        let mut reader = Reader::new();
        let mut seen = ScreenModel::new(TerminalSize::clamped(40, 10));
        for piece in cuts {
            let told = reader.coalescer.read(piece, reader.now, 0);
            reader.coalescer.queue(told, reader.now, &mut reader.waiting);
        }
        let told = finish(&mut reader, &mut seen);
        assert_eq!(seen.contents(), reader.coalescer.screen.contents());
        (told, seen.contents())
    };
    let whole = told_of(&[ODD]);
    assert!(whole.0.contains("\x1b[31mred"), "{whole:?}");
    for cut in 0..ODD.len() {
        let (before, after) = ODD.split_at(cut);
        assert_eq!(told_of(&[before, after]), whole, "cut at {cut}");
    }
    let single: Vec<&[u8]> = ODD.chunks(1).collect();
    assert_eq!(told_of(&single), whole);
}

#[test]
fn a_drawing_in_the_middle_of_a_sequence_leaves_no_trace_of_it() {
    for (before, after) in [
        ("\x1b[3", "1mred"),
        ("\x1b]0;half of a ti", "tle\x07red"),
        ("\x1bPq12", "34\x1b\\red"),
        ("\x1b", "(Bred"),
    ] {
        let mut reader = Reader::new();
        let mut seen = ScreenModel::new(TerminalSize::clamped(40, 10));
        reader.print(before);
        seen.process(text_of(&reader.wait(0)).as_bytes());
        reader.coalescer.redraw();
        seen.process(text_of(&reader.wait(0)).as_bytes());
        reader.print(after);
        let told = finish(&mut reader, &mut seen);
        assert_eq!(seen.contents(), "red", "{before:?} {told:?}");
        assert_eq!(reader.coalescer.screen.contents(), "red");
    }
}
