//! Pictures of the screens at three sizes in both themes (W-12): nothing is wider than the screen, and people look at them.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use browser::{Page, Screen};
use serde_json::json;

use crate::scene::{SCREENS, Scene};

/// What reaches beyond the edge of the screen.
pub(crate) const TOO_WIDE: &str = "[...document.querySelectorAll('body *')].filter((it) => it.checkVisibility() \
    && !it.closest('.spoken, .skip, template, pre, .chat-tabs, .md-table') && it.getBoundingClientRect().right > innerWidth + 1) \
    .map((it) => it.outerHTML.slice(0, 120))";

/// Words of buttons that are broken over lines, and heads whose parts lie over each other.
pub(crate) const CROWDED: &str = "(() => {
    const isBroken = (text) => [...text.data.matchAll(/\\S+/g)].some(({ index, 0: word }) => {
        const range = document.createRange();
        range.setStart(text, index);
        range.setEnd(text, index + word.length);
        return range.getClientRects().length > 1;
    });
    const texts = (element) => [...element.childNodes].flatMap((it) => it.nodeType === Node.TEXT_NODE ? [it] : it.nodeType === Node.ELEMENT_NODE && !it.matches('.truncate') ? texts(it) : []);
    const shown = (selector) => [...document.querySelectorAll(selector)].filter((it) => it.checkVisibility());
    return [...shown('.button').filter((it) => texts(it).some(isBroken)), ...shown('.head > :not(.truncate)').filter((it) => it.scrollWidth > it.clientWidth + 1)]
        .map((it) => it.outerHTML.slice(0, 120));
})()";

/// Those that docs/web.md shows.
const IN_DOCS: [&str; 6] = [
    "web-sessions-390-light.png",
    "web-approval-390-light.png",
    "web-questions-390-dark.png",
    "web-session-390-dark.png",
    "web-session-1440-light.png",
    "web-approval-1440-dark.png",
];

/// Where pictures are left: where somebody wants to look at them, else in a directory that goes.
pub(crate) fn pictures_directory(scratch: &Path) -> Result<PathBuf> {
    let directory = std::env::var_os("GREENROOM_PICTURES")
        .map(PathBuf::from)
        .unwrap_or_else(|| scratch.to_owned());
    std::fs::create_dir_all(&directory)?;
    Ok(directory)
}

/// Shows the page as on a device with this theme, without motion.
pub(crate) async fn set_theme(page: &Page, theme: &str) -> Result<()> {
    let media = json!({"features": [{"name": "prefers-color-scheme", "value": theme}, {"name": "prefers-reduced-motion", "value": "reduce"}]});
    page.command("Emulation.setEmulatedMedia", media).await.map(drop)
}

async fn take(screen: Screen) -> Result<()> {
    let Some(scene) = Scene::start(screen).await? else { return Ok(()) };
    let scratch = tempfile::tempdir()?;
    let directory = pictures_directory(scratch.path())?;
    let is_kept = std::env::var("GREENROOM_KEEP").as_deref() == Ok("pictures");
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/img");
    for theme in ["light", "dark"] {
        scene.set_theme(theme).await?;
        for name in SCREENS {
            scene.show(name).await?;
            let wide = scene.page.evaluate(TOO_WIDE).await?;
            ensure!(wide.as_array().is_some_and(Vec::is_empty), "{name}: {wide:#}");
            let crowded = scene.page.evaluate(CROWDED).await?;
            ensure!(crowded.as_array().is_some_and(Vec::is_empty), "{name}: {crowded:#}");
            let file = format!("web-{name}-{}-{theme}.png", screen.width);
            let path = directory.join(&file);
            scene.page.screenshot(&path).await?;
            // A blank screen of one colour is far smaller.
            ensure!(std::fs::metadata(&path)?.len() > 6_000, "{name} is blank");
            if is_kept && IN_DOCS.contains(&file.as_str()) {
                std::fs::copy(&path, kept.join(&file))?;
            }
        }
    }
    scene.page.observed().check(&scene.host.origin, &[])
}

#[tokio::test]
async fn screens_fit_a_phone() -> Result<()> {
    take(Screen::PHONE).await
}

#[tokio::test]
async fn screens_fit_a_tablet() -> Result<()> {
    take(Screen::TABLET).await
}

#[tokio::test]
async fn screens_fit_a_desktop() -> Result<()> {
    take(Screen::DESKTOP).await
}
