//! What changed, on the page: files and diffs as the host keeps them, marks on those that were read, notes on their lines with replies, and
//! files that are taken back after a question.

#![allow(unreachable_pub, reason = "modules that several tests share")]

mod common;

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use browser::{Browser, Host, Page, Screen, button};
use common::sign_in;
use serde_json::json;

fn git(directory: &Path, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("git");
    let output = command.current_dir(directory).args(arguments).output()?;
    ensure!(output.status.success(), "git {arguments:?}: {output:?}");
    Ok(())
}

/// A repository with two files of which one was changed since.
fn make_repository(directory: &Path) -> Result<()> {
    std::fs::create_dir(directory)?;
    std::fs::write(directory.join("greeting.txt"), "hello\nworld\n")?;
    std::fs::write(directory.join("other.txt"), "as it was\n")?;
    git(directory, &["init", "--quiet", "--initial-branch=main"])?;
    git(directory, &["config", "user.name", "Test"])?;
    git(directory, &["config", "user.email", "test@example.com"])?;
    git(directory, &["add", "--all"])?;
    git(directory, &["commit", "--quiet", "-m", "first"])?;
    Ok(std::fs::write(
        directory.join("greeting.txt"),
        "hello\nthere\n",
    )?)
}

/// Starts a session of the scripted agent in a folder.
async fn start_session(page: &Page, folder: &Path) -> Result<()> {
    page.evaluate("location.hash = '#/new'").await?;
    page.wait_for("document.querySelector('#new-agent option[value=scripted]')")
        .await?;
    page.evaluate("(() => { const it = document.querySelector('#new-agent'); it.value = 'scripted'; it.dispatchEvent(new Event('change')); })()").await?;
    let path = folder.to_str().context("a path that can be typed")?;
    page.type_into(&browser::labelled("Folder"), path).await?;
    page.type_into(&browser::labelled("First message"), "hello")
        .await?;
    page.press(&button("Start")).await?;
    page.wait_for("location.hash.startsWith('#/s/') && document.querySelector('.turn')")
        .await?;
    Ok(())
}

/// The only file, and the label of its mark.
const FILE: &str = "document.querySelector('details.file')";
const REVIEWED: &str = "document.querySelector('details.file summary label')";

/// Shows what differs from the last commit.
async fn choose_uncommitted(page: &Page) -> Result<()> {
    let choice = "document.querySelector('select[aria-label=\"Which changes\"]')";
    let entry =
        format!("[...{choice}.options].find(it => it.textContent === 'Uncommitted changes')");
    page.wait_for(&format!("{choice} && {entry}")).await?;
    page.evaluate(&format!(
        "(() => {{ {choice}.value = {entry}.value; {choice}.dispatchEvent(new Event('change')); }})()"
    ))
    .await?;
    Ok(())
}

/// Replies to the note, takes the reply back, and resolves the note.
async fn answer_note(page: &Page) -> Result<()> {
    page.press(&button("Reply")).await?;
    page.type_into("document.querySelector('dialog[open] input')", "Or nobody")
        .await?;
    page.press(&button("Keep")).await?;
    page.wait_for_text("Or nobody").await?;
    let removes = "[...document.querySelectorAll('.comment button')].filter(it => it.textContent === 'Remove')";
    page.press(&format!("{removes}.at(-1)")).await?;
    page.wait_for(&format!(
        "{removes}.length === 0 && !document.body.textContent.includes('Or nobody')"
    ))
    .await?;
    page.press(&button("Resolve")).await?;
    page.wait_for_text("Note on line 2, resolved").await
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_read_noted_reviewed_and_taken_back() -> Result<()> {
    let Some(browser) = Browser::start().await? else {
        return Ok(());
    };
    let host = Host::start(&[])?;
    let folder = host.home().join("myapp");
    make_repository(&folder)?;
    let page = sign_in(&browser, &host, Screen::PHONE).await?;
    start_session(&page, &folder).await?;
    page.evaluate("location.hash += '/changes'").await?;
    choose_uncommitted(&page).await?;
    let row = |sign: &str, text: &str| {
        format!(
            "[...document.querySelectorAll('.diff-row')].find(it => it.textContent.includes({}) && it.classList.contains('diff-{sign}'))",
            json!(text)
        )
    };
    page.wait_for(&row("add", "there")).await?;
    page.wait_for(&row("del", "world")).await?;
    ensure!(
        !page.text().await?.contains("other.txt"),
        "only what changed"
    );

    // A note on a line is kept by the host, and there again after a reload.
    page.press(&format!(
        "{}.querySelector('button.diff-number')",
        row("add", "there")
    ))
    .await?;
    page.type_into(
        "document.querySelector('.comment textarea')",
        "Greet everybody",
    )
    .await?;
    page.press(&button("Keep as a note")).await?;
    page.wait_for_text("Note on line 2").await?;
    page.reload().await?;
    choose_uncommitted(&page).await?;
    page.wait_for_text("Greet everybody").await?;
    answer_note(&page).await?;

    // Who read a file marks it. The mark is the host's, and goes when the file becomes another.
    page.press(REVIEWED).await?;
    page.wait_for(&format!("{REVIEWED}.control.checked && !{FILE}.open"))
        .await?;
    page.reload().await?;
    choose_uncommitted(&page).await?;
    page.wait_for(&format!("{REVIEWED}?.control.checked"))
        .await?;
    std::fs::write(folder.join("greeting.txt"), "hello\nall\n")?;
    page.reload().await?;
    choose_uncommitted(&page).await?;
    page.wait_for(&row("add", "all")).await?;
    page.wait_for(&format!("{REVIEWED} && !{REVIEWED}.control.checked"))
        .await?;

    // Nothing is taken back before somebody says so.
    page.press(&button("Discard")).await?;
    page.wait_for_text("Discard these changes?").await?;
    page.press("[...document.querySelectorAll('dialog[open] button')].find(it => it.textContent === 'Cancel')")
        .await?;
    ensure!(
        std::fs::read_to_string(folder.join("greeting.txt"))? == "hello\nall\n",
        "nobody said so"
    );
    page.press(&button("Discard")).await?;
    page.press("[...document.querySelectorAll('dialog[open] button')].find(it => it.textContent === 'Discard')")
        .await?;
    page.wait_for_text("Nothing is changed").await?;
    ensure!(
        std::fs::read_to_string(folder.join("greeting.txt"))? == "hello\nworld\n",
        "the file is as it was"
    );
    page.observed().check(&host.origin, &[])
}
