//! The screens at their worst (W-12): nothing there yet, names and code without end, ten workers, an error, a host that is away.
//! Nothing is wider than the screen at any size, and people look at the pictures.

use anyhow::{Result, ensure};
use browser::{Browser, Host, Page, Screen};
use serde_json::{Value, json};

use crate::looks::{CROWDED, TOO_WIDE, pictures_directory, set_theme};
use crate::signed_in::{go, is_live, sign_in, start_session_in};

const LONG: &str =
    "Rechtsschutzversicherungsgesellschaftenvertretungsangelegenheitenbearbeitungsverzeichnis";

fn scenes() -> Value {
    let path = format!("/srv/{}/src/{}.rs", LONG.to_lowercase(), LONG.to_lowercase());
    let code = format!("```rust\nlet {} = \"{}\";\n```\n\n", LONG.to_lowercase(), "x".repeat(300));
    let table = format!("| a | b | c |\n|---|---|---|\n| {LONG} | {LONG} | {LONG} |\n\n");
    let link = format!("https://example.com/{}", "path/".repeat(60));
    let call = json!({"tool": {"name": LONG, "display": LONG, "input": {"command": format!("cat {path} | sed 's/{LONG}//'"), "path": path},
        "confirm": "ask", "title": format!("Read {path}")}});
    let mut workers = vec![json!({"title": "Ten workers"})];
    workers.extend((0..10).map(|number| {
        json!({"spawn": {"title": format!("worker {number} {LONG}"), "steps": [{"say": ["done"]}]}})
    }));
    workers.push(json!({"say": ["All workers are done."]}));
    json!({"model": "scripted-1", "scenes": [
        {"when": "^long", "steps": [{"title": format!("{LONG} {LONG}")}, {"say": [code, table, link]}, call]},
        {"when": "^workers", "steps": workers},
        {"when": "^fail", "steps": [{"title": "An error"}, {"fail": {"type": "provider", "message": format!("the model’s server refused: {LONG} {LONG}"), "resumable": true}}]},
        {"steps": [{"say": ["Heard."]}]},
    ]})
}

/// Takes a picture of what is shown in both themes, and looks whether it fits.
async fn look(page: &Page, name: &str, width: u32) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let directory = pictures_directory(scratch.path())?;
    for theme in ["light", "dark"] {
        set_theme(page, theme).await?;
        let wide = page.evaluate(TOO_WIDE).await?;
        ensure!(wide.as_array().is_some_and(Vec::is_empty), "{name}: {wide:#}");
        let crowded = page.evaluate(CROWDED).await?;
        ensure!(crowded.as_array().is_some_and(Vec::is_empty), "{name}: {crowded:#}");
        let path = directory.join(format!("web-{name}-{width}-{theme}.png"));
        page.screenshot(&path).await?;
        ensure!(std::fs::metadata(&path)?.len() > 4_000, "{name} is blank");
    }
    Ok(())
}

async fn take(screen: Screen) -> Result<()> {
    let Some(browser) = Browser::start().await? else { return Ok(()) };
    let directory = tempfile::tempdir()?;
    let script = directory.path().join("script.json");
    std::fs::write(&script, scenes().to_string())?;
    let host = Host::start(&["--script", &script.display().to_string()])?;
    let folder = host.home().join(LONG);
    std::fs::create_dir(&folder)?;
    let page = browser.page(screen).await?;
    sign_in(&page, &host).await?;
    look(&page, "none", screen.width).await?;
    go(&page, "#/inbox").await?;
    page.wait_for_text("Nothing waits for you").await?;
    look(&page, "none-inbox", screen.width).await?;

    start_session_in(&page, Some(&folder), "fail").await?;
    page.wait_for_text("refused").await?;
    look(&page, "error", screen.width).await?;
    start_session_in(&page, Some(&folder), "workers").await?;
    page.wait_for_text("All workers are done.").await?;
    look(&page, "workers", screen.width).await?;
    start_session_in(&page, Some(&folder), &format!("long {LONG} {LONG}")).await?;
    page.wait_for("document.querySelector('#main table') && document.querySelector('#main pre')")
        .await?;
    page.wait_for("document.title.startsWith('(1) ')").await?;
    look(&page, "long", screen.width).await?;
    go(&page, "#/").await?;
    page.wait_for("document.querySelectorAll('.session-link').length === 3").await?;
    look(&page, "long-sessions", screen.width).await?;
    go(&page, "#/inbox").await?;
    let request = "document.querySelector('.request-link')";
    page.wait_for(request).await?;
    look(&page, "long-inbox", screen.width).await?;
    page.evaluate(&format!("{request}.click()")).await?;
    page.wait_for("document.querySelector('.sheet-foot[data-armed=yes]')").await?;
    look(&page, "long-approval", screen.width).await?;
    page.key("Escape", 0).await?;

    host.freeze()?;
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))").await?;
    page.wait_for(&format!("!{}", is_live())).await?;
    go(&page, "#/").await?;
    page.wait_for("/Reconnecting|Connecting/.test(document.body.innerText)").await?;
    look(&page, "away", screen.width).await?;
    host.thaw()?;
    page.wait_for(&is_live()).await?;
    let caused = ["WebSocket connection to", "net::ERR_", "Failed to load resource"];
    page.observed().check(&host.origin, &caused)
}

#[tokio::test]
async fn the_worst_fits_a_phone() -> Result<()> {
    take(Screen::PHONE).await
}

#[tokio::test]
async fn the_worst_fits_a_tablet() -> Result<()> {
    take(Screen::TABLET).await
}

#[tokio::test]
async fn the_worst_fits_a_desktop() -> Result<()> {
    take(Screen::DESKTOP).await
}
