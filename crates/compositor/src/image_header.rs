//! What the header of an image says: how large it is, and whether it is animated. Nothing is decoded.
//!
//! Promises: reads headers only, and they are only used to refuse an image; never panics on what is not an image.

/// Width and height in pixels, as the header says.
pub fn dimensions(bytes: &[u8]) -> Option<(u32, u32)> {
    match crate::media_type::detect(bytes)? {
        "image/png" => png(bytes),
        "image/gif" => gif(bytes),
        "image/jpeg" => jpeg(bytes),
        "image/webp" => webp(bytes),
        _ => None,
    }
}

fn png(bytes: &[u8]) -> Option<(u32, u32)> {
    (bytes.get(12..16)? == b"IHDR").then_some(())?;
    let side = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    Some((side(16)?, side(20)?))
}

fn gif(bytes: &[u8]) -> Option<(u32, u32)> {
    Some((le16(bytes, 6)?, le16(bytes, 8)?))
}

fn le16(bytes: &[u8], at: usize) -> Option<u32> {
    let pair = bytes.get(at..at + 2)?;
    Some(u32::from(pair[0]) | u32::from(pair[1]) << 8)
}

fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        if *bytes.get(at)? != 0xff {
            return None;
        }
        let marker = *bytes.get(at + 1)?;
        let be16 = |at: usize| {
            let pair = bytes.get(at..at + 2)?;
            Some(u32::from(pair[0]) << 8 | u32::from(pair[1]))
        };
        match marker {
            // Fill bytes.
            0xff => at += 1,
            // Frames of all kinds; the gaps are tables.
            0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                return Some((be16(at + 7)?, be16(at + 5)?));
            }
            0x01 | 0xd0..=0xd8 => at += 2,
            0xd9 | 0xda => return None,
            _ => at += 2 + usize::try_from(be16(at + 2)?.max(2)).ok()?,
        }
    }
}

fn webp(bytes: &[u8]) -> Option<(u32, u32)> {
    let le24 = |at: usize| {
        let three = bytes.get(at..at + 3)?;
        Some(u32::from(three[0]) | u32::from(three[1]) << 8 | u32::from(three[2]) << 16)
    };
    match bytes.get(12..16)? {
        b"VP8X" => Some((le24(24)? + 1, le24(27)? + 1)),
        b"VP8 " => Some((le16(bytes, 26)? & 0x3fff, le16(bytes, 28)? & 0x3fff)),
        b"VP8L" => {
            let bits = le16(bytes, 21)? | le16(bytes, 23)? << 16;
            Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
        }
        _ => None,
    }
}

/// Whether a GIF has more than one frame.
pub fn is_animated_gif(bytes: &[u8]) -> bool {
    let mut frames = 0;
    let Some(flags) = bytes.get(10) else { return false };
    let mut at = 13 + colour_table_bytes(*flags);
    // Each block is at least one byte long: the walk ends.
    while let Some(block) = bytes.get(at) {
        at = match block {
            0x21 => after_blocks(bytes, at + 2),
            0x2c => {
                frames += 1;
                if frames > 1 {
                    return true;
                }
                let flags = bytes.get(at + 9).copied().unwrap_or(0);
                after_blocks(bytes, at + 11 + colour_table_bytes(flags))
            }
            _ => return false,
        };
    }
    false
}

/// The bytes of a table of colours, if there is one.
fn colour_table_bytes(flags: u8) -> usize {
    match flags & 0x80 {
        0 => 0,
        _ => 3 << ((flags & 0x07) + 1),
    }
}

/// Where a chain of blocks, each with its length before it, has ended.
fn after_blocks(bytes: &[u8], mut at: usize) -> usize {
    while let Some(&length) = bytes.get(at) {
        at += 1 + usize::from(length);
        if length == 0 {
            break;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn headers_give_the_size_of_a_picture() {
        let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xff\xc2\0\x0b\x08\x01\x02\x03\x04";
        assert_eq!(dimensions(jpeg), Some((0x0304, 0x0102)));
        assert_eq!(dimensions(b"GIF89a\x05\x01\x06\0"), Some((0x0105, 6)));
        let lossy = b"RIFF....WEBPVP8 ....\x30\x01\x00\x9d\x01\x2a\x10\x40\x20\x00";
        assert_eq!(dimensions(lossy), Some((0x10, 0x20)));
        let lossless = b"RIFF....WEBPVP8L....\x2f\x01\x80\0\0";
        assert_eq!(dimensions(lossless), Some((2, 3)));
        let extended = b"RIFF....WEBPVP8X....\0\0\0\0\x09\0\0\x13\0\0";
        assert_eq!(dimensions(extended), Some((10, 20)));
        assert_eq!(dimensions(b"\x89PNG\r\n\x1a\n"), None, "only its first bytes");
        assert_eq!(dimensions(b"hello"), None);
    }

    proptest! {
        #[test]
        fn nothing_that_calls_itself_a_picture_panics(
            detect in prop::sample::select(vec![
                &b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR"[..], b"\xff\xd8\xff", b"GIF89a", b"RIFF....WEBPVP8 ",
                b"RIFF....WEBPVP8L", b"RIFF....WEBPVP8X",
            ]),
            rest in prop::collection::vec(any::<u8>(), 0..64),
        ) {
            let bytes = [detect, &rest].concat();
            let _ = dimensions(&bytes);
            let _ = is_animated_gif(&bytes);
        }
    }
}
