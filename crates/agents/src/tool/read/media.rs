//! Files that are not text: pictures and documents as themselves, and a description of everything else.
//!
//! Promises: nothing that is too large to be shown is loaded whole.
//! Must not know: which model is asked, and what it can see.

use compositor::image_header::dimensions;
use compositor::media_type::detect;
use serde_json::json;
use wire::NamedBody;
use workspace::{FILE_BYTES_MAX, FileBytes, Workspace, WorkspacePath, picture};

use super::super::format::group_digits;
use super::super::{ToolError, ToolOutcome};

const FILE_MIB_MAX: u64 = FILE_BYTES_MAX / 1_024 / 1_024;

/// Formats that people name, by their first bytes.
const KNOWN_FORMATS: [(&[u8], &str); 10] = [
    (b"\x7fELF", "an executable or a library (ELF)"),
    (b"PK\x03\x04", "a ZIP archive (or a document made of one)"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"\xfd7zXZ", "an xz archive"),
    (b"BZh", "a bzip2 archive"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\0asm", "a WebAssembly module"),
    (b"MZ", "an executable (PE)"),
    (b"\xff\xfe", "text in UTF-16"),
];

/// A picture or a document as itself, a description of anything else. `beginning` is what was read of it so far.
pub(super) fn read(
    path: &WorkspacePath,
    mime: &str,
    beginning: FileBytes,
    workspace: &Workspace,
) -> Result<ToolOutcome, ToolError> {
    let display_path = workspace.display_path(path);
    let file = match beginning.body {
        Some(_) => beginning,
        None => workspace.read_bytes(path, FILE_BYTES_MAX)?,
    };
    match refuse(mime, &file) {
        None => Ok(show(&display_path, mime, file, workspace)),
        Some(why) => Ok(ToolOutcome {
            text: format!("[{display_path} is {}; {why}]", describe(mime, &file)),
            summary: format!("Looked at {display_path}"),
            success: true,
            ..ToolOutcome::default()
        }),
    }
}

/// A picture, and nothing else.
pub(in super::super) fn view_image(
    path: &WorkspacePath,
    workspace: &Workspace,
) -> Result<ToolOutcome, ToolError> {
    let display_path = workspace.display_path(path);
    let file = workspace.read_bytes(path, FILE_BYTES_MAX)?;
    let mime = detect(&file.bytes).filter(|mime| mime.starts_with("image/"));
    let Some(mime) = mime else {
        return Err(ToolError(format!(
            "{display_path} is not an image (PNG, JPEG, GIF, WebP); `read` shows text"
        )));
    };
    match refuse(mime, &file) {
        None => Ok(show(&display_path, mime, file, workspace)),
        Some(why) => {
            let description = describe(mime, &file);
            Err(ToolError(format!("{display_path} is {description}; {why}")))
        }
    }
}

/// The file beside its description.
fn show(display_path: &str, mime: &str, file: FileBytes, workspace: &Workspace) -> ToolOutcome {
    if let Some(receipt) = &file.receipt {
        workspace.mark_as_read(receipt);
    }
    let text = format!("[{display_path} is {}]", describe(mime, &file));
    let body = file.body.unwrap_or_else(|| NamedBody::of(file.bytes));
    let content = json!({
        "type": "resource",
        "uri": body.digest().uri_with_name(display_path),
        "contentType": mime,
        "sizeHint": body.len(),
    });
    ToolOutcome {
        text,
        summary: format!("Read {display_path}"),
        content: vec![content],
        bodies: vec![body],
        success: true,
        ..ToolOutcome::default()
    }
}

/// Why a file cannot be shown as it is.
fn refuse(mime: &str, file: &FileBytes) -> Option<String> {
    match mime {
        _ if mime.starts_with("image/") => refuse_image(file),
        "application/pdf" if file.receipt.is_some() => None,
        "application/pdf" => Some(format!(
            "documents over {FILE_MIB_MAX} MiB cannot be shown: take pages out of it with a command"
        )),
        _ => Some("its content cannot be shown".to_owned()),
    }
}

/// Why a picture cannot be shown.
fn refuse_image(file: &FileBytes) -> Option<String> {
    if file.receipt.is_none() {
        return Some(format!(
            "images over {FILE_MIB_MAX} MiB cannot be shown: scale it down with a command and view the copy"
        ));
    }
    refuse_pixels(&file.bytes)
}

/// Why a picture with so many pixels cannot be shown: small files may hold huge ones.
pub(super) fn refuse_pixels(bytes: &[u8]) -> Option<String> {
    let pixels = dimensions(bytes).map(|(width, height)| u64::from(width) * u64::from(height));
    let most = picture::PIXELS_MAX;
    (pixels? > most).then(|| {
        format!(
            "images of more than {} pixels cannot be shown: scale it down with a command and view the copy",
            group_digits(most)
        )
    })
}

/// `a PNG image of 640 x 480 pixels, 12,345 bytes`.
fn describe(mime: &str, file: &FileBytes) -> String {
    let (class, format) = mime.split_once('/').unwrap_or((mime, ""));
    let format = format.trim_start_matches("x-").to_ascii_uppercase();
    let kind = match class {
        "image" => format!("{format} image"),
        "audio" => format!("{format} sound"),
        "video" => format!("{format} film"),
        _ => format!("{format} document"),
    };
    let article = if kind.starts_with(['A', 'E', 'I', 'O', 'U', 'M']) { "an" } else { "a" };
    let pixels = match dimensions(&file.bytes) {
        Some((width, height)) if class == "image" => format!(" of {width} x {height} pixels,"),
        _ => " of".to_owned(),
    };
    format!("{article} {kind}{pixels} {} bytes", group_digits(file.total))
}

/// A file that is neither text nor anything that could be shown.
pub(super) fn describe_binary(display_path: &str, file: &FileBytes) -> ToolOutcome {
    let known = KNOWN_FORMATS.iter().find(|(magic, _)| file.bytes.starts_with(magic));
    let kind = known.map_or("a binary file, or text in UTF-16,", |(_, kind)| kind);
    let bytes = group_digits(file.total);
    ToolOutcome {
        text: format!("[{display_path} is {kind} of {bytes} bytes; its content cannot be shown]"),
        summary: format!("Looked at {display_path}"),
        success: true,
        ..ToolOutcome::default()
    }
}
