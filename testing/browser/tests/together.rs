//! W-4: two browsers and `greenroom chat` on one session: an approval that one gives closes in all, a draft does not overwrite a
//! draft, and all three end equal.

#![allow(unreachable_pub, reason = "modules that several tests share")]

mod common;

use std::io::{Read, Write};
use std::process::Child;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use browser::{Browser, Host, Page, Screen, button, labelled};
use common::{open_session, sign_in};
use serde_json::{Value, json};
use tokio::time::{Instant, interval};

const SCRIPT: &str = r#"{"scenes": [
    {"when": "^call", "steps": [
        {"tool": {"name": "list_files", "display": "List files", "input": {"directory": "."}, "confirm": "ask"}},
        {"say": ["It is decided."]}]},
    {"steps": [{"say": ["Heard: {{text}}"]}]}]}"#;

/// How long the terminal may take to print something.
const PRINTS_WITHIN: Duration = Duration::from_secs(60);

/// `greenroom chat` without a terminal: lines in, lines out.
struct Chat {
    child: Child,
    printed: Arc<Mutex<String>>,
}

impl Chat {
    fn open(host: &Host, session: &str) -> Result<Self> {
        let mut child = host.spawn(&["chat", "--session", session])?;
        let printed: Arc<Mutex<String>> = Arc::default();
        let outputs: [Option<Box<dyn Read + Send>>; 2] = [
            child.stdout.take().map(|it| Box::new(it) as _),
            child.stderr.take().map(|it| Box::new(it) as _),
        ];
        for mut output in outputs.into_iter().flatten() {
            let printed = Arc::clone(&printed);
            std::thread::spawn(move || {
                let mut piece = [0; 4_096];
                while let Ok(count @ 1..) = output.read(&mut piece) {
                    let text = String::from_utf8_lossy(piece.get(..count).unwrap_or_default());
                    let mut all = printed.lock().unwrap_or_else(PoisonError::into_inner);
                    all.push_str(&text);
                }
            });
        }
        Ok(Self { child, printed })
    }

    fn type_line(&mut self, line: &str) -> Result<()> {
        let input = self.child.stdin.as_mut().context("its input is piped")?;
        Ok(writeln!(input, "{line}")?)
    }

    fn printed(&self) -> String {
        let printed = self.printed.lock();
        printed.unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn prints(&self, text: &str) -> Result<()> {
        self.prints_times(text, 1).await
    }

    /// Waits until a text was printed so often in all.
    async fn prints_times(&self, text: &str, times: usize) -> Result<()> {
        let deadline = Instant::now() + PRINTS_WITHIN;
        let mut poll = interval(Duration::from_millis(20));
        while self.printed().matches(text).count() < times {
            poll.tick().await;
            if Instant::now() > deadline {
                bail!("{text:?} was not printed: {}", self.printed());
            }
        }
        Ok(())
    }
}

impl Drop for Chat {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn new_session(host: &Host) -> Result<String> {
    let printed = host.run(&["send", "--json", "hello"])?;
    let last: Value = serde_json::from_str(printed.lines().last().context("a line")?)?;
    Ok(last["session"].as_str().context("a session")?.to_owned())
}

const ARMED: &str =
    "document.querySelector('.sheet-foot[data-armed=yes] [data-choice=approve]:enabled')";
const NO_SHEET: &str = "!document.querySelector('.sheet[open] [data-choice]')";

/// What the transcript says, without what is between words and without times.
async fn said(page: &Page) -> Result<Vec<String>> {
    let texts = page
        .evaluate("[...document.querySelectorAll('.transcript .message, .transcript .md')].map(it => it.textContent.replace(/\\s+/g, ' ').trim())")
        .await?;
    let texts = texts.as_array().context("texts")?;
    Ok(texts.iter().map(|it| it.as_str().unwrap_or_default().to_owned()).collect())
}

/// Both write at once: what one of them types stays in its own field, until one of them chooses.
async fn write_at_once(phone: &Page, laptop: &Page, chat: &mut Chat) -> Result<()> {
    phone.type_into(&labelled("Message"), "written on the phone").await?;
    laptop.type_into(&labelled("Message"), "written on the laptop").await?;
    chat.type_line("from the terminal")?;
    for (page, own) in [(phone, "written on the phone"), (laptop, "written on the laptop")] {
        page.wait_for_text("Heard: from the terminal").await?;
        let field = page.evaluate(&format!("{}.value", labelled("Message"))).await?;
        ensure!(field == json!(own), "a draft was overwritten: {field}");
    }

    // Who is told of the other's draft chooses, and both have the same then.
    laptop.press(&button("Keep mine")).await?;
    phone.press(&button("Use it")).await?;
    for page in [phone, laptop] {
        let field = labelled("Message");
        page.wait_for(&format!("{field}.value === 'written on the laptop'")).await?;
        page.wait_for("!document.body.innerText.includes('Changed on another device')").await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn two_browsers_and_a_terminal_see_and_decide_the_same() -> Result<()> {
    let (Some(first), Some(second)) = (Browser::start().await?, Browser::start().await?) else {
        return Ok(());
    };
    let directory = tempfile::tempdir()?;
    let script = directory.path().join("script.json");
    std::fs::write(&script, SCRIPT)?;
    let host = Host::start(&["--script", script.to_str().context("a path")?])?;
    let session = new_session(&host)?;
    let phone = sign_in(&first, &host, Screen::PHONE).await?;
    let laptop = sign_in(&second, &host, Screen::DESKTOP).await?;
    for page in [&phone, &laptop] {
        open_session(page, &session).await?;
        page.wait_for_text("Heard: hello").await?;
    }
    let mut chat = Chat::open(&host, &session)?;

    // The terminal's call is approved on the laptop: it closes in all.
    chat.type_line("call it")?;
    chat.prints("? List files").await?;
    for page in [&phone, &laptop] {
        page.press(&button("Review")).await?;
        page.wait_for(ARMED).await?;
    }
    laptop.press(ARMED).await?;
    for page in [&phone, &laptop] {
        page.wait_for_text("It is decided.").await?;
        page.wait_for(NO_SHEET).await?;
        page.key("Escape", 0).await?;
    }
    chat.prints("It is decided.").await?;

    // The terminal gives the next one.
    chat.type_line("call again")?;
    for page in [&phone, &laptop] {
        page.press(&button("Review")).await?;
        page.wait_for(ARMED).await?;
    }
    // What is typed before it asks would be a message.
    chat.prints_times("? List files", 2).await?;
    chat.type_line("1")?;
    for page in [&phone, &laptop] {
        page.wait_for(NO_SHEET).await?;
        page.key("Escape", 0).await?;
        page.wait_for(&format!("!({})", button("Review"))).await?;
    }

    write_at_once(&phone, &laptop, &mut chat).await?;

    let (on_phone, on_laptop) = (said(&phone).await?, said(&laptop).await?);
    ensure!(on_phone == on_laptop, "{on_phone:#?}\n{on_laptop:#?}");
    for text in ["It is decided.", "Heard: from the terminal"] {
        ensure!(on_phone.iter().any(|it| it.contains(text)), "{on_phone:#?}");
        ensure!(chat.printed().contains(text), "{}", chat.printed());
    }
    for page in [&phone, &laptop] {
        page.observed().check(&host.origin, &[])?;
    }
    Ok(())
}
