//! `greenroom read-document`: reads a PDF from standard input for the host, which runs this in a process of its own because a
//! document may be made to break whoever reads it.
//!
//! Promises: before the first byte is read, the process gives up what it does not need: memory, time, files.
//! Must not know: hosts, sessions.

use std::io::{Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use anyhow::{Context, bail};
use host::{DOCUMENT_LINE, DOCUMENT_TEXT_BYTES_MAX, ReadDocument};
use pdf_extract::{Document, PlainTextOutput, output_doc_page};
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::exit::Exit;

/// Memory of the process, its program included; it may hold a document of 64 MiB and what that is unpacked to.
const MEMORY_BYTES_MAX: u64 = 1 << 30;
/// Seconds of the processor.
const PROCESSOR_S_MAX: u64 = 20;
/// The largest document.
const DOCUMENT_BYTES_MAX: u64 = 64 << 20;

/// Read a PDF from standard input: how the host reads documents
#[derive(Debug, clap::Args)]
pub(crate) struct ReadDocumentOptions {}

/// Runs before anything else of the program is set up.
pub(crate) fn run() -> Exit {
    let done = match confine() {
        Ok(()) => read(),
        Err(error) => Err(error).context("the process that reads it cannot be confined"),
    };
    let said = done.or_else(|error| {
        say(&ReadDocument {
            problem: Some(format!("it could not be read: {error:#}")),
            ..ReadDocument::default()
        })
    });
    match said {
        Ok(()) => Exit::Complete,
        Err(_) => Exit::Failed, // nobody reads the output any more
    }
}

/// Limits that nothing in this process can lift again.
fn confine() -> std::io::Result<()> {
    let limits = [
        (Resource::As, MEMORY_BYTES_MAX),
        (Resource::Cpu, PROCESSOR_S_MAX),
        // No file can be written, and none is left behind by a crash.
        (Resource::Fsize, 0),
        (Resource::Core, 0),
        // Standard input, output and error are open.
        (Resource::Nofile, 3),
    ];
    for (resource, most) in limits {
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        setrlimit(resource, limit)?;
    }
    Ok(())
}

fn read() -> anyhow::Result<()> {
    let mut bytes = Vec::new();
    std::io::stdin()
        .take(DOCUMENT_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .context("it could not be read in full")?;
    if bytes.len() as u64 > DOCUMENT_BYTES_MAX {
        bail!("it is larger than {} MiB", DOCUMENT_BYTES_MAX >> 20);
    }
    // It is the process that is protected, not the reader: a panic is one more way not to read it.
    let loaded = catch_unwind(|| Document::load_mem(&bytes));
    let Ok(Ok(document)) = loaded else {
        let encrypted = memchr::memmem::find(&bytes, b"/Encrypt").is_some();
        let problem = if encrypted {
            // that says it all
            None
        } else {
            Some("it could not be read: it is damaged, or no PDF".to_owned())
        };
        return say(&ReadDocument { encrypted, problem, ..ReadDocument::default() });
    };
    drop(bytes);
    let pages: Vec<u32> = document.get_pages().into_keys().collect();
    // What opens without a password is decrypted by now.
    let is_locked = document.is_encrypted() || document.trailer.has(b"Encrypt");
    let mut read = ReadDocument {
        pages: u64::try_from(pages.len()).ok(),
        encrypted: is_locked || document.was_encrypted(),
        ..ReadDocument::default()
    };
    say(&read)?;
    if is_locked {
        return Ok(()); // it has a password
    }
    let mut unread = 0;
    for page in pages {
        let page = catch_unwind(AssertUnwindSafe(|| read_page(&document, page)));
        // A page that cannot be read does not take the others with it.
        let page = page.unwrap_or_default();
        unread += u64::from(!page.is_whole);
        read.text.push_str(page.text.trim());
        read.text.push_str("\n\n");
        read.text_pages += 1;
        if read.text.len() > DOCUMENT_TEXT_BYTES_MAX {
            let end = read.text.floor_char_boundary(DOCUMENT_TEXT_BYTES_MAX);
            read.text.truncate(end);
            break;
        }
    }
    read.problem = match unread {
        0 => None,
        1 => Some("the text of one of its pages could not be read".to_owned()),
        more => Some(format!("the text of {more} of its pages could not be read")),
    };
    say(&read)
}

#[derive(Debug, Default)]
struct PageText {
    text: String,
    is_whole: bool,
}

fn read_page(document: &Document, page: u32) -> PageText {
    let mut text = String::new();
    let mut output = PlainTextOutput::new(&mut text);
    // What came before an error is text of the page, too.
    let is_whole = output_doc_page(document, &mut output, page).is_ok();
    PageText { text, is_whole }
}

fn say(read: &ReadDocument) -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "\n{DOCUMENT_LINE}{}", serde_json::to_string(read)?)?;
    Ok(output.flush()?)
}
