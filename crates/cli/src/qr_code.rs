//! A link as a QR code for a terminal.
//!
//! Promises: it is drawn dark on light whatever the terminal's colours are, with the border that readers need, or not at all
//! where it does not fit.
//! Must not know: what the link is for.

use qrcode::QrCode;
use qrcode::render::unicode::Dense1x2;
use unicode_width::UnicodeWidthStr;

/// Black on white: phones read it the other way round only sometimes.
const DARK_ON_LIGHT: &str = "\u{1b}[38;5;16;48;5;231m";
const PLAIN: &str = "\u{1b}[0m";

/// The lines of the code; nothing if it is wider than `columns`, or the link too long for any.
pub(crate) fn draw(link: &str, columns: usize, has_colours: bool) -> Option<String> {
    let code = QrCode::new(link).ok()?;
    let mut renderer = code.render::<Dense1x2>();
    if !has_colours {
        // Most terminals are dark: what is drawn is light there.
        renderer.dark_color(Dense1x2::Light).light_color(Dense1x2::Dark);
    }
    let drawn = renderer.quiet_zone(true).build();
    if drawn.lines().any(|line| line.width() > columns) {
        return None;
    }
    Some(if has_colours {
        drawn.lines().map(|line| format!("{DARK_ON_LIGHT}{line}{PLAIN}\n")).collect()
    } else {
        format!("{drawn}\n")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_that_does_not_fit_is_not_drawn() {
        let link = "https://laptop.example/#pair=AAAAAAAAAAAAAAAAAAAAAA";
        let drawn = draw(link, 80, true).unwrap();
        let lines: Vec<&str> = drawn.lines().collect();
        assert!(lines.iter().all(|line| line.starts_with(DARK_ON_LIGHT) && line.ends_with(PLAIN)));
        assert!(lines.len() <= 24, "it fits into a usual terminal: {}", lines.len());
        assert!(draw(link, 30, true).is_none());
        let plain = draw(link, 80, false).unwrap();
        assert!(!plain.contains('\u{1b}'));
        assert!(plain.starts_with('█'), "the border is light on a dark terminal");
    }
}
