//! PDFs with the real binary: what a model takes goes as it is, what it does not take is read in a process of its own, and a
//! document that is made to break its reader breaks nothing else.

use std::fmt::Write as _;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pdf_extract::{Document, EncryptionState, EncryptionVersion, Permissions};
use serde_json::{Value, json};
use testkit::{Answer, ModelServer};

use crate::running::{Host, data_directory, result, text};

/// A PDF with a line of text on each page.
fn pdf(lines: &[String], trailer: &str) -> Vec<u8> {
    let streams = lines.iter().map(|line| {
        let content = format!("BT /F1 12 Tf 72 720 Td ({line}) Tj ET");
        format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()).into_bytes()
    });
    pdf_of_streams(&streams.collect::<Vec<_>>(), trailer)
}

/// A PDF with a page for each content.
fn pdf_of_streams(contents: &[Vec<u8>], trailer: &str) -> Vec<u8> {
    let pages = contents.len();
    let kids: String = (0..pages).map(|page| format!("{} 0 R ", 4 + 2 * page)).collect();
    let mut objects: Vec<Vec<u8>> = vec![
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        format!("<< /Type /Pages /Kids [{kids}] /Count {pages} >>").into_bytes(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
            .to_vec(),
    ];
    for (page, content) in contents.iter().enumerate() {
        objects.push(
            format!(
                "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {} 0 R /Resources << /Font << /F1 3 0 R >> >> >>",
                5 + 2 * page
            )
            .into_bytes(),
        );
        objects.push(content.clone());
    }
    let mut file = b"%PDF-1.4\n".to_vec();
    let mut offsets = Vec::new();
    for (number, object) in objects.iter().enumerate() {
        offsets.push(file.len());
        file.extend(format!("{} 0 obj\n", number + 1).bytes());
        file.extend(object);
        file.extend(b"\nendobj\n");
    }
    let xref = file.len();
    let mut end = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for offset in offsets {
        writeln!(end, "{offset:010} 00000 n ").unwrap();
    }
    write!(
        end,
        "trailer\n<< /Size {} /Root 1 0 R {trailer} >>\nstartxref\n{xref}\n%%EOF\n",
        objects.len() + 1
    )
    .unwrap();
    file.extend(end.bytes());
    file
}

/// A stream that is unpacked to a gigabyte and more of zeros.
fn bomb() -> Vec<u8> {
    const REPEATS: usize = 6_000_000; // of 258 bytes
    let mut bits = BitWriter::default();
    // One block with fixed codes; a zero; then "the same again" over and over.
    bits.put(0b1, 1);
    bits.put(0b01, 2);
    bits.put_code(0b0011_0000, 8);
    for _ in 0..REPEATS {
        bits.put_code(0b1100_0101, 8); // a length of 258
        bits.put_code(0, 5); // a distance of 1
    }
    bits.put_code(0, 7);
    let mut packed = vec![0x78, 0x9c];
    packed.extend(bits.bytes);
    let mut stream =
        format!("<< /Length {} /Filter /FlateDecode >>\nstream\n", packed.len()).into_bytes();
    stream.extend(packed);
    stream.extend(b"\nendstream");
    stream
}

#[derive(Default)]
struct BitWriter {
    bytes: Vec<u8>,
    used: u32,
}

impl BitWriter {
    /// The lowest bit first.
    fn put(&mut self, value: u32, count: u32) {
        for index in 0..count {
            if self.used == 0 {
                self.bytes.push(0);
            }
            let bit = u8::from(value >> index & 1 == 1);
            *self.bytes.last_mut().unwrap() |= bit << self.used;
            self.used = (self.used + 1) % 8;
        }
    }

    /// Codes have their highest bit first.
    fn put_code(&mut self, code: u32, count: u32) {
        for index in (0..count).rev() {
            self.put(code >> index & 1, 1);
        }
    }
}

struct Documents {
    host: Host,
    server: ModelServer,
}

impl Documents {
    /// A host with a model that takes PDFs of two pages.
    async fn start(more: &str) -> Self {
        let server = ModelServer::start().await;
        let data = tempfile::tempdir().unwrap();
        let directory = data_directory(data.path());
        std::fs::create_dir_all(&directory).unwrap();
        let toml = format!("[[models]]\nid = \"m\"\nbase_url = \"{}\"\n{more}\n", server.url());
        std::fs::write(directory.join("greenroom.toml"), toml).unwrap();
        let host = tokio::task::spawn_blocking(move || Host::start_with(data, &[])).await.unwrap();
        Self { host, server }
    }

    /// Sends a document; the chat, and the content of the message that the model got.
    async fn send(&self, name: &str, bytes: &[u8]) -> (Value, Value) {
        self.send_with(name, bytes, &["look", "--attach", name]).await
    }

    /// The same for one that is named in the message.
    async fn mention(&self, name: &str, bytes: &[u8]) -> (Value, Value) {
        let message = format!("look at @file:{name}");
        self.send_with(name, bytes, &[&message]).await
    }

    async fn send_with(&self, name: &str, bytes: &[u8], arguments: &[&str]) -> (Value, Value) {
        let path: PathBuf = self.host.data.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        self.server.answers([Answer::streams(["Read."])]);
        let mut command = self.host.greenroom();
        command.args(["send", "--json"]).args(arguments);
        let sent = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let turn = result(&sent.stdout);
        assert_eq!(turn["text"], "Read.", "{turn:#}{}", text(&sent.stderr));
        let request = self.server.requests().last().unwrap().json();
        let user = request["messages"].as_array().unwrap().last().unwrap()["content"].clone();
        let chat = self.host.state(turn["chat"].as_str().unwrap());
        (chat, user)
    }
}

fn lines(pages: usize) -> Vec<String> {
    (1..=pages).map(|page| format!("Line of page {page}")).collect()
}

fn file_in(user: &Value) -> bool {
    user.as_array().is_some_and(|blocks| blocks.iter().any(|block| block["type"] == "file"))
}

#[tokio::test]
async fn a_pdf_with_too_many_pages_goes_as_its_text_and_a_short_one_as_it_is() {
    let documents = Documents::start("pdf_pages = 2").await;
    let (_, user) = documents.send("short.pdf", &pdf(&lines(2), "")).await;
    assert!(file_in(&user), "{user:#}");
    let (chat, user) = documents.send("long.pdf", &pdf(&lines(3), "")).await;
    assert!(!file_in(&user), "{user:#}");
    let said = user.to_string();
    assert!(said.contains("long.pdf (its text)") && said.contains("Line of page 3"), "{user:#}");
    let shown = chat.to_string();
    assert!(
        shown.contains("it has 3 pages, and openai_chat takes 2 (its text is sent instead)"),
        "{chat:#}"
    );
}

#[tokio::test]
async fn a_pdf_that_is_named_in_a_message_is_treated_like_one_that_is_attached() {
    let documents = Documents::start("pdf_pages = 2").await;
    let (_, user) = documents.mention("short.pdf", &pdf(&lines(2), "")).await;
    assert!(file_in(&user), "{user:#}");
    let (chat, user) = documents.mention("long.pdf", &pdf(&lines(3), "")).await;
    let said = user.to_string();
    assert!(said.contains("long.pdf (its text)") && said.contains("Line of page 3"), "{user:#}");
    assert!(
        chat.to_string()
            .contains("it has 3 pages, and openai_chat takes 2 (its text is sent instead)"),
        "{chat:#}"
    );
    let (chat, user) = documents.mention("odd.pdf", b"%PDF-1.4 and nothing").await;
    assert!(file_in(&user), "what nobody can read is left to the server");
    assert!(!chat.to_string().contains("instead"), "{chat:#}");
}

#[tokio::test]
async fn a_model_that_sees_nothing_reads_the_text_of_a_pdf() {
    let documents = Documents::start("vision = false").await;
    let (_, user) = documents.send("note.pdf", &pdf(&lines(1), "")).await;
    assert!(user.to_string().contains("Line of page 1"), "{user:#}");
}

#[tokio::test]
async fn an_encrypted_pdf_is_described_with_the_reason() {
    let documents = Documents::start("").await;
    let trailer = "/Encrypt << /Filter /Standard /V 1 /R 2 /O (00000000000000000000000000000000) /U (11111111111111111111111111111111) /P -4 >> /ID [<00> <00>]";
    let (chat, user) = documents.send("locked.pdf", &pdf(&lines(1), trailer)).await;
    assert!(!file_in(&user) && !user.to_string().contains("Line of page"), "{user:#}");
    assert!(user.to_string().contains("locked.pdf"), "{user:#}");
    assert!(
        chat.to_string()
            .contains("it is encrypted, and openai_chat cannot open it (described instead)"),
        "{chat:#}"
    );
}

/// A PDF with a line of text, encrypted by RC4 with 40 or 128 bits: whoever opens it needs this password.
fn encrypted_pdf(password: &str, bits: usize) -> Vec<u8> {
    let plain = pdf(&lines(1), "/ID [<00112233> <00112233>]");
    let mut document = Document::load_mem(&plain).unwrap();
    let (owner_password, permissions) = ("of its owner", Permissions::all());
    let state = EncryptionState::try_from(match bits {
        40 => EncryptionVersion::V1 {
            document: &document,
            owner_password,
            user_password: password,
            permissions,
        },
        key_length => EncryptionVersion::V2 {
            document: &document,
            owner_password,
            user_password: password,
            key_length,
            permissions,
        },
    });
    document.encrypt(&state.unwrap()).unwrap();
    let mut bytes = Vec::new();
    document.save_to(&mut bytes).unwrap();
    let holds = |words: &[u8]| memchr::memmem::find(&bytes, words).is_some();
    assert!(holds(b"/Encrypt") && !holds(b"Line of page"));
    bytes
}

#[tokio::test]
async fn an_encrypted_pdf_that_opens_without_a_password_goes_as_its_text() {
    let documents = Documents::start("").await;
    for bits in [40, 128] {
        let open = encrypted_pdf("", bits);
        let name = format!("open{bits}.pdf");
        for (chat, user) in
            [documents.send(&name, &open).await, documents.mention(&name, &open).await]
        {
            let said = user.to_string();
            assert!(said.contains("Line of page 1") && !file_in(&user), "{user:#}");
            assert!(said.contains(&format!("{name} (its text)")), "{user:#}");
            let why = "it is encrypted, and openai_chat cannot open it (its text is sent instead)";
            assert!(chat.to_string().contains(why), "{chat:#}");
        }
        let locked = encrypted_pdf("secret", bits);
        let (chat, user) = documents.send("locked.pdf", &locked).await;
        assert!(!file_in(&user) && !user.to_string().contains("Line of page"), "{user:#}");
        let why = "it is encrypted, and openai_chat cannot open it (described instead)";
        assert!(chat.to_string().contains(why), "{chat:#}");
    }
    // A server that takes encrypted ones gets them as they are.
    let documents = Documents::start("pdf_encrypted = true").await;
    let (_, user) = documents.send("open.pdf", &encrypted_pdf("", 128)).await;
    assert!(file_in(&user), "{user:#}");
}

#[tokio::test]
async fn a_pdf_that_is_made_to_break_its_reader_breaks_nothing_else() {
    let documents = Documents::start("vision = false").await;
    let (chat, user) = documents.send("bomb.pdf", &pdf_of_streams(&[bomb()], "")).await;
    assert!(user.to_string().contains("bomb.pdf") && !file_in(&user), "{user:#}");
    let said = chat.to_string();
    assert!(said.contains("described instead") && said.contains("reading it took "), "{chat:#}");
    let status = std::fs::read_to_string(format!("/proc/{}/status", documents.host.pid())).unwrap();
    let peak: u64 = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .trim()
        .parse()
        .unwrap();
    assert!(peak < 700 << 10, "the host had {peak} KiB in memory");
    // Neither does what is no PDF at all, or one that goes in circles.
    let circular = b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n2 0 obj\n<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 2 >>\nendobj\ntrailer << /Root 1 0 R >>";
    for bytes in [&b"%PDF-1.4 and nothing else"[..], circular] {
        let (chat, user) = documents.send("odd.pdf", bytes).await;
        assert!(user.to_string().contains("odd.pdf"), "{user:#}");
        assert!(chat.to_string().contains("described instead"), "{chat:#}");
    }
    let (chat, _) = documents.send("no.pdf", b"%PDF-1.4 and no more").await;
    let said = "it could not be read: it is damaged, or no PDF";
    assert!(chat.to_string().contains(said), "{chat:#}");
    let (_, user) = documents.send("fine.pdf", &pdf(&lines(1), "")).await;
    assert!(user.to_string().contains("Line of page 1"), "{user:#}");
}

/// What reads documents is no verb for people.
#[test]
fn the_reader_says_what_it_read_in_a_line_of_its_own() {
    let host = Host::start();
    assert!(!text(&host.run(&["--help"]).stdout).contains("read-document"));
    let read = |bytes: &[u8]| {
        let mut child = host
            .greenroom()
            .arg("read-document")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), bytes).unwrap();
        let output = text(&child.wait_with_output().unwrap().stdout);
        let last = output
            .lines()
            .rfind(|line| line.starts_with("greenroom-document "))
            .unwrap()
            .to_owned();
        serde_json::from_str::<Value>(last.trim_start_matches("greenroom-document ")).unwrap()
    };
    let said = read(&pdf(&lines(2), ""));
    assert_eq!((&said["pages"], &said["text_pages"]), (&json!(2), &json!(2)), "{said}");
    assert!(said["text"].as_str().unwrap().contains("Line of page 2"));
    assert_eq!(read(b"no document")["pages"], Value::Null);
}

#[tokio::test]
async fn a_check_says_of_a_pdf_what_is_sent_of_it() {
    let documents = Documents::start("pdf_pages = 2").await;
    let (chat, user) = documents.send("long.pdf", &pdf(&lines(3), "")).await;
    assert!(user.to_string().contains("Line of page 3"), "{user:#}");
    let message = json!({"text": "look", "attachments": [{
        "type": "embeddedResource", "label": "long.pdf", "contentType": "application/pdf",
        "data": STANDARD.encode(pdf(&lines(3), "")),
    }]});
    let file = documents.host.data.path().join("message.json");
    std::fs::write(&file, message.to_string()).unwrap();
    let session = chat["resource"].as_str().unwrap().to_owned();
    for arguments in [["--session", session.as_str()], ["--model", "m"]] {
        let mut command = documents.host.greenroom();
        command.args(["compose", "--json"]).args(arguments);
        command.arg(&file);
        let checked = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let result: Value = serde_json::from_slice(&checked.stdout)
            .unwrap_or_else(|error| panic!("{error} {}", text(&checked.stderr)));
        let part = &result["parts"][1];
        assert_eq!(part["treatment"], "text", "{arguments:?} {result:#}");
        assert!(part["why"].as_str().unwrap().contains("it has 3 pages"), "{result:#}");
    }
}
