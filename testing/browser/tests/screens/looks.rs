//! Pictures of the screens at three sizes in both themes (W-12): nothing is wider than the screen, and people look at them.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use browser::Screen;

use crate::scene::{SCREENS, Scene};

/// What reaches beyond the edge of the screen.
const TOO_WIDE: &str = "[...document.querySelectorAll('body *')].filter((it) => it.checkVisibility() \
    && !it.closest('.spoken, .skip, template, pre, .chat-tabs') && it.getBoundingClientRect().right > innerWidth + 1) \
    .map((it) => it.outerHTML.slice(0, 120))";

async fn take(screen: Screen) -> Result<()> {
    let Some(scene) = Scene::start(screen).await? else {
        return Ok(());
    };
    let scratch = tempfile::tempdir()?;
    let is_kept = std::env::var("GREENROOM_KEEP").as_deref() == Ok("pictures");
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/img");
    let directory: PathBuf = if is_kept {
        kept
    } else {
        scratch.path().to_owned()
    };
    std::fs::create_dir_all(&directory)?;
    for theme in ["light", "dark"] {
        scene.set_theme(theme).await?;
        for name in SCREENS {
            scene.show(name).await?;
            let wide = scene.page.evaluate(TOO_WIDE).await?;
            ensure!(
                wide.as_array().is_some_and(Vec::is_empty),
                "{name}: {wide:#}"
            );
            let file = format!("web-{name}-{}-{theme}.png", screen.width);
            let path = directory.join(file);
            scene.page.screenshot(&path).await?;
            // A blank screen of one colour is far smaller.
            ensure!(std::fs::metadata(&path)?.len() > 6_000, "{name} is blank");
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
