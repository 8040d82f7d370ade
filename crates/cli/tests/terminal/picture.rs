//! A screen as a picture: what a person sees, as an SVG file that a document can show.
//!
//! Promises: every cell stands where the terminal has it, with its colours, weight and underline.

use std::fmt::Write;

/// Size of a cell, in pixels, of a common monospaced font.
const CELL_WIDTH: f32 = 8.4;
const CELL_HEIGHT: f32 = 18.0;
const MARGIN: f32 = 14.0;
const FONT: &str = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace";

const BACKGROUND: &str = "#16181d";
const FOREGROUND: &str = "#d5d8df";
/// The sixteen colours of a dark theme, normal and bright.
const PALETTE: [&str; 16] = [
    "#3b4048", "#e06c75", "#8fbf6f", "#d9a860", "#6aa5e8", "#c083d8", "#5fb8c2", "#c3c8d1",
    "#717885", "#ef8a92", "#a8d68a", "#ecc27e", "#8dbdf5", "#d4a0e8", "#82d0d8", "#f0f2f5",
];

/// How a stretch of cells looks.
#[derive(Clone, PartialEq, Eq)]
struct Look {
    color: String,
    background: Option<String>,
    is_bold: bool,
    is_dim: bool,
    is_italic: bool,
    is_underlined: bool,
}

impl Look {
    fn of(cell: &vt100::Cell) -> Self {
        let (mut color, mut background) = (css(cell.fgcolor()), css(cell.bgcolor()));
        if cell.inverse() {
            (color, background) = (
                Some(background.unwrap_or_else(|| BACKGROUND.to_owned())),
                Some(color.unwrap_or_else(|| FOREGROUND.to_owned())),
            );
        }
        Self {
            color: color.unwrap_or_else(|| FOREGROUND.to_owned()),
            background,
            is_bold: cell.bold(),
            is_dim: cell.dim(),
            is_italic: cell.italic(),
            is_underlined: cell.underline(),
        }
    }

    fn attributes(&self) -> String {
        let mut attributes = format!("fill=\"{}\"", self.color);
        for (is_set, attribute) in [
            (self.is_bold, " font-weight=\"bold\""),
            (self.is_dim, " opacity=\"0.62\""),
            (self.is_italic, " font-style=\"italic\""),
            (self.is_underlined, " text-decoration=\"underline\""),
        ] {
            attributes.push_str(if is_set { attribute } else { "" });
        }
        attributes
    }
}

fn css(color: vt100::Color) -> Option<String> {
    match color {
        vt100::Color::Default => None,
        vt100::Color::Idx(index) => {
            let named = PALETTE.get(usize::from(index));
            Some(named.map_or_else(|| cube(index), |name| (*name).to_owned()))
        }
        vt100::Color::Rgb(red, green, blue) => Some(format!("#{red:02x}{green:02x}{blue:02x}")),
    }
}

/// A colour of the 6x6x6 cube, or of the greys behind it.
fn cube(index: u8) -> String {
    let level = |step: u8| if step == 0 { 0 } else { 55 + step * 40 };
    let (red, green, blue) = match index {
        232.. => {
            let grey = 8 + (index - 232) * 10;
            (grey, grey, grey)
        }
        _ => {
            let cell = index - 16;
            (level(cell / 36), level(cell / 6 % 6), level(cell % 6))
        }
    };
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// The screen as an SVG document; rows below the last one that shows something are left out.
pub fn svg(screen: &vt100::Screen) -> String {
    let (rows, columns) = (screen.size().0.get(), screen.size().1.get());
    let is_used = |row: &u16| {
        let mut cells = (0..columns).filter_map(|column| screen.cell(*row, column));
        cells.any(|cell| !cell.contents().trim().is_empty())
    };
    let used = (0..rows).rev().find(is_used).map_or(1, |last| last + 1);
    let width = f32::from(columns) * CELL_WIDTH + 2.0 * MARGIN;
    let height = f32::from(used) * CELL_HEIGHT + 2.0 * MARGIN;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"{FONT}\" font-size=\"14\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"10\" fill=\"{BACKGROUND}\"/>\n"
    );
    for row in 0..used {
        write_row(&mut out, screen, row, columns);
    }
    let (row, column) = screen.cursor_position();
    if !screen.hide_cursor() {
        let (x, y) = position(row, column);
        let _ = writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{CELL_WIDTH}\" height=\"{CELL_HEIGHT}\" fill=\"{FOREGROUND}\" opacity=\"0.55\"/>"
        );
    }
    out.push_str("</svg>\n");
    out
}

fn position(row: u16, column: u16) -> (f32, f32) {
    (MARGIN + f32::from(column) * CELL_WIDTH, MARGIN + f32::from(row) * CELL_HEIGHT)
}

fn write_row(out: &mut String, screen: &vt100::Screen, row: u16, columns: u16) {
    let mut column = 0;
    while column < columns {
        let Some(first) = screen.cell(row, column) else { break };
        let look = Look::of(first);
        let (start, mut text) = (column, String::new());
        while let Some(cell) = screen.cell(row, column).filter(|cell| Look::of(cell) == look) {
            if !cell.is_wide_continuation() {
                text.push_str(if cell.has_contents() { cell.contents() } else { " " });
            }
            column += 1;
        }
        let (x, y) = position(row, start);
        let wide = f32::from(column - start) * CELL_WIDTH;
        if let Some(background) = &look.background {
            let _ = writeln!(
                out,
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{wide:.1}\" height=\"{CELL_HEIGHT}\" fill=\"{background}\"/>"
            );
        }
        if !text.trim().is_empty() {
            // The length holds every cell in its place, whatever font there is.
            let baseline = y + CELL_HEIGHT * 0.75;
            let _ = writeln!(
                out,
                "<text x=\"{x:.1}\" y=\"{baseline:.1}\" textLength=\"{wide:.1}\" xml:space=\"preserve\" {}>{}</text>",
                look.attributes(),
                escape(&text)
            );
        }
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
