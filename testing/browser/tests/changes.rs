//! What changed, on the page: files and diffs as the host keeps them, marks on those that were read, notes on files and lines that are
//! answered, changed and sent to the agent as one message, and files that are taken back after a question.

#![allow(unreachable_pub, reason = "modules that several tests share")]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use browser::{Browser, Host, Page, Screen, button, css};
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
    Ok(std::fs::write(directory.join("greeting.txt"), "hello\nthere\n")?)
}

/// Starts a session of the scripted agent in a folder.
async fn start_session(page: &Page, folder: &Path) -> Result<()> {
    page.evaluate("location.hash = '#/new'").await?;
    page.wait_for("document.querySelector('#new-agent option[value=scripted]')").await?;
    page.evaluate("(() => { const it = document.querySelector('#new-agent'); it.value = 'scripted'; it.dispatchEvent(new Event('change')); })()").await?;
    let path = folder.to_str().context("a path that can be typed")?;
    page.type_into(&browser::labelled("Folder"), path).await?;
    page.type_into(&browser::labelled("First message"), "hello").await?;
    page.press(&button("Start")).await?;
    page.wait_for("location.hash.startsWith('#/s/') && document.querySelector('.turn')").await?;
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

/// The field that is open for a note.
const FIELD: &str = "document.querySelector('.comment textarea')";

/// Writes into the field for a note and has it kept.
async fn keep_note(page: &Page, text: &str) -> Result<()> {
    page.type_into(FIELD, text).await?;
    page.press(&button("Keep")).await?;
    page.wait_for_text(text).await?;
    page.wait_for(&format!("!{FIELD}")).await
}

/// A button of a dialog that asks.
fn dialog_button(text: &str) -> String {
    format!(
        "[...document.querySelectorAll('dialog[open] button')].find(it => it.textContent === {})",
        json!(text)
    )
}

/// Removes the last text of the notes.
async fn remove_last(page: &Page) -> Result<()> {
    page.press("[...document.querySelectorAll('.comment button[aria-label=Remove]')].at(-1)")
        .await?;
    page.press(&dialog_button("Remove")).await
}

/// Replies to the note, changes it, takes the reply back, and resolves the note.
async fn answer_note(page: &Page) -> Result<()> {
    page.press(&button("Reply")).await?;
    keep_note(page, "Or nobody").await?;
    page.press(&button("Edit")).await?;
    page.evaluate(&format!("{FIELD}.value = ''")).await?;
    keep_note(page, "Greet all of them\nand then some").await?;
    page.wait_for("!document.body.textContent.includes('Greet everybody')").await?;
    remove_last(page).await?;
    page.wait_for("!document.body.textContent.includes('Or nobody')").await?;
    page.press(&button("Resolve")).await?;
    page.wait_for_text("Note on line 2, resolved").await?;
    page.press(&button("Reopen")).await?;
    page.wait_for("!document.body.textContent.includes('resolved')").await
}

/// The picture that docs/web.md shows.
const IN_DOCS: &str = "web-changes-390-light.png";

/// Takes pictures of the changes with notes, in both themes, where somebody wants to look at them.
async fn take_pictures(page: &Page, width: u32) -> Result<()> {
    let wanted = std::env::var_os("GREENROOM_PICTURES").map(PathBuf::from);
    let is_kept = std::env::var("GREENROOM_KEEP").as_deref() == Ok("pictures");
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/img");
    for theme in ["light", "dark"] {
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": theme}, {"name": "prefers-reduced-motion", "value": "reduce"}]});
        page.command("Emulation.setEmulatedMedia", media).await?;
        let file = format!("web-changes-{width}-{theme}.png");
        if let Some(directory) = &wanted {
            std::fs::create_dir_all(directory)?;
            page.screenshot(&directory.join(&file)).await?;
        }
        if is_kept && file == IN_DOCS {
            page.screenshot(&kept.join(&file)).await?;
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_read_noted_reviewed_and_taken_back() -> Result<()> {
    let Some(browser) = Browser::start().await? else { return Ok(()) };
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
    ensure!(!page.text().await?.contains("other.txt"), "only what changed");

    // A note on a line is kept by the host, and there again after a reload.
    page.press(&format!("{}.querySelector('button.diff-number')", row("add", "there"))).await?;
    keep_note(&page, "Greet everybody").await?;
    page.wait_for_text("Note on line 2").await?;
    page.reload().await?;
    choose_uncommitted(&page).await?;
    page.wait_for_text("Greet everybody").await?;
    answer_note(&page).await?;

    // Who read a file marks it. The mark is the host's, and goes when the file becomes another.
    page.press(REVIEWED).await?;
    page.wait_for(&format!("{REVIEWED}.control.checked && !{FILE}.open")).await?;
    page.wait_for_text("1 of 1 reviewed").await?;
    page.reload().await?;
    choose_uncommitted(&page).await?;
    page.wait_for(&format!("{REVIEWED}?.control.checked")).await?;
    std::fs::write(folder.join("greeting.txt"), "hello\nall\n")?;
    page.reload().await?;
    choose_uncommitted(&page).await?;
    page.wait_for(&row("add", "all")).await?;
    page.wait_for(&format!("{REVIEWED} && !{REVIEWED}.control.checked")).await?;

    // Nothing is taken back before somebody says so.
    page.press(&button("Discard")).await?;
    page.wait_for_text("Discard these changes?").await?;
    page.press(&dialog_button("Cancel")).await?;
    ensure!(
        std::fs::read_to_string(folder.join("greeting.txt"))? == "hello\nall\n",
        "nobody said so"
    );
    page.press(&button("Discard")).await?;
    page.press(&dialog_button("Discard")).await?;
    page.wait_for_text("Nothing is changed").await?;
    ensure!(
        std::fs::read_to_string(folder.join("greeting.txt"))? == "hello\nworld\n",
        "the file is as it was"
    );
    // The host offers what can be done also with nothing.
    page.wait_for(&button("Commit")).await?;
    page.observed().check(&host.origin, &[])
}

/// What the agent does; a message that begins with `!` is a command.
const SCRIPT: &str = r#"{"scenes": [{"steps": [{"say": ["Heard: {{text}}"]}]}]}"#;

/// A command changes a file and says nothing of it: its turn is offered all the same, with what it changed.
async fn check_turn_of_command(page: &Page) -> Result<()> {
    common::send(page, "!echo more >> other.txt").await?;
    page.wait_for("document.querySelectorAll('.turn[data-state=complete]').length === 2").await?;
    page.evaluate("location.hash += '/changes'").await?;
    let options =
        "[...(document.querySelector('select[aria-label=\"Which changes\"]')?.options ?? [])]";
    let entry = format!("{options}.find(it => it.textContent.includes('echo more'))");
    page.wait_for(&entry).await?;
    let is_other_offered = format!("{options}.some(it => it.textContent.includes('hello'))");
    ensure!(
        page.evaluate(&is_other_offered).await? == false,
        "a turn without calls changed nothing"
    );
    page.evaluate(&format!(
        "(() => {{ const entry = {entry}; const choice = entry.closest('select'); choice.value = entry.value; choice.dispatchEvent(new Event('change')); }})()"
    ))
    .await?;
    page.wait_for("document.querySelector('details.file[data-path=\"other.txt\"]')").await?;
    ensure!(
        page.evaluate("document.querySelectorAll('details.file').length").await? == 1,
        "only what the turn changed"
    );
    Ok(())
}

/// The file that has notes.
const GREETING: &str = "details.file[data-path=\"greeting.txt\"]";

/// Where there are two columns and 1,100 pixels, both sides of a diff stand beside each other; in the third column they do not.
async fn check_side_by_side(page: &Page) -> Result<()> {
    ensure!(
        page.evaluate("document.querySelector('.diff-pair')").await?.is_null(),
        "the column is narrow"
    );
    let narrower = json!({"width": 1_100, "height": 900, "deviceScaleFactor": 1, "mobile": false});
    page.command("Emulation.setDeviceMetricsOverride", narrower).await?;
    page.wait_for("document.querySelector('#main .file')").await?;
    page.evaluate("void (document.querySelector('#main .file').open = true)").await?;
    let pair =
        "[...document.querySelectorAll('.diff-pair')].find(it => it.querySelector('.diff-add'))";
    page.wait_for(pair).await?;
    let sides = page
        .evaluate(&format!("[...{pair}.querySelectorAll('.diff-text')].map(it => it.textContent)"))
        .await?;
    ensure!(sides == json!(["world", "there"]), "{sides}");
    let wide = json!({"width": 1_440, "height": 900, "deviceScaleFactor": 1, "mobile": false});
    page.command("Emulation.setDeviceMetricsOverride", wide).await?;
    page.wait_for("document.querySelector('#panel .file')").await?;
    page.wait_for(&button("Send as one message")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn notes_on_a_file_and_on_a_line_go_to_the_agent_as_one_message() -> Result<()> {
    let Some(browser) = Browser::start().await? else { return Ok(()) };
    let script = tempfile::NamedTempFile::new()?;
    std::fs::write(script.path(), SCRIPT)?;
    let host = Host::start(&["--script", script.path().to_str().context("a path")?])?;
    let folder = host.home().join("myapp");
    make_repository(&folder)?;
    let page = sign_in(&browser, &host, Screen::DESKTOP).await?;
    start_session(&page, &folder).await?;
    let chat = page.evaluate("location.hash").await?;
    check_turn_of_command(&page).await?;

    choose_uncommitted(&page).await?;
    page.wait_for("document.querySelectorAll('details.file').length === 2").await?;
    page.press(&button("Actions for greeting.txt")).await?;
    page.press("[...document.querySelectorAll('.menu-entry')].find(it => it.textContent.startsWith('Write a note'))")
        .await?;
    keep_note(&page, "Is this file needed?").await?;
    page.wait_for_text("Note on the file").await?;
    page.press(&css(&format!("{GREETING} .diff-add button.diff-new"))).await?;
    keep_note(&page, "Greet everybody").await?;
    page.wait_for_text("2 open notes").await?;
    take_pictures(&page, 1440).await?;
    check_side_by_side(&page).await?;
    page.press(&button("Send as one message")).await?;
    page.wait_for_text("Heard: Please look at my notes.").await?;
    page.wait_for(&format!(
        "[...document.querySelectorAll('.message .chip')].some(it => it.textContent === '2 notes') && location.hash.startsWith({chat})"
    ))
    .await?;

    // They are open until somebody resolves them, and known to be sent: on another device, too.
    let phone = browser.page(Screen::PHONE).await?;
    phone.go_to(&host.origin).await?;
    phone.wait_for(common::IS_LIVE).await?;
    phone.evaluate(&format!("location.hash = {chat} + '/changes'")).await?;
    choose_uncommitted(&phone).await?;
    phone.wait_for_text("2 open notes, sent").await?;
    // Not by a finger, which browsers mark: a picture is taken of it.
    phone.wait_for(&css(GREETING)).await?;
    let open = format!("void ({}.open = true)", css(GREETING));
    phone.evaluate(&open).await?;
    phone.wait_for_text("Note on line 2, sent").await?;
    take_pictures(&phone, 390).await?;
    page.observed().check(&host.origin, &[])?;
    phone.observed().check(&host.origin, &[])
}
