//! The orientation that a camera notes beside its picture, read and applied.
//!
//! Promises: a note that cannot be read turns nothing; a turned picture takes as much memory again
//! while it is turned, and no more.
//! Must not know: formats, limits.

use super::pixels::DecodedPicture;

/// Steps that turn a picture upright: it is read along these axes of the decoded one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Orientation {
    /// Rows are read as columns.
    is_transposed: bool,
    /// Columns are read from the right.
    is_mirrored: bool,
    /// Rows are read from the bottom.
    is_upside_down: bool,
}

/// Tag of the orientation in a note of a camera, and its type: one short number.
const ORIENTATION_TAG: u16 = 0x0112;
const SHORT_TYPE: u16 = 3;
/// Bytes of one entry: tag, type, count, value.
const ENTRY_BYTES: usize = 12;

impl Orientation {
    /// Reads the orientation from the EXIF data of a picture, which is laid out like a TIFF.
    pub(super) fn from_exif(exif: &[u8]) -> Option<Self> {
        let is_big_endian = match exif.get(..4)? {
            b"II\x2a\0" => false,
            b"MM\0\x2a" => true,
            _ => return None,
        };
        let short = |at: usize| -> Option<u16> {
            let bytes = *exif.get(at..)?.first_chunk()?;
            Some(if is_big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
        };
        let long = |at: usize| -> Option<u32> {
            let bytes = *exif.get(at..)?.first_chunk()?;
            Some(if is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
        };
        let directory = usize::try_from(long(4)?).ok()?;
        let entries = usize::from(short(directory)?);
        for entry in 0..entries {
            let at = directory.checked_add(2 + entry * ENTRY_BYTES)?;
            let is_orientation =
                short(at)? == ORIENTATION_TAG && short(at + 2)? == SHORT_TYPE && long(at + 4)? == 1;
            if is_orientation {
                return Self::from_number(short(at + 8)?);
            }
        }
        None
    }

    /// Reads the number that EXIF gives an orientation; upright ones have none here.
    fn from_number(number: u16) -> Option<Self> {
        let (is_transposed, is_mirrored, is_upside_down) = match number {
            2 => (false, true, false),
            3 => (false, true, true),
            4 => (false, false, true),
            5 => (true, false, false),
            6 => (true, false, true),
            7 => (true, true, true),
            8 => (true, true, false),
            _ => return None,
        };
        Some(Self { is_transposed, is_mirrored, is_upside_down })
    }

    pub(super) fn apply(self, picture: &DecodedPicture) -> Option<DecodedPicture> {
        let (width, height) = if self.is_transposed {
            (picture.height(), picture.width())
        } else {
            (picture.width(), picture.height())
        };
        let mut turned = Vec::with_capacity(picture.bytes().len());
        for y in 0..height {
            for x in 0..width {
                let (mut from_x, mut from_y) = if self.is_transposed { (y, x) } else { (x, y) };
                if self.is_mirrored {
                    from_x = picture.width() - 1 - from_x;
                }
                if self.is_upside_down {
                    from_y = picture.height() - 1 - from_y;
                }
                turned.extend_from_slice(picture.pixel(from_x, from_y));
            }
        }
        DecodedPicture::new(width, height, picture.has_alpha(), turned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_that_is_cut_or_points_nowhere_turns_nothing() {
        let exif = b"II\x2a\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
        assert_eq!(Orientation::from_exif(exif), Orientation::from_number(6));
        for cut in 0..20 {
            assert_eq!(Orientation::from_exif(&exif[..cut]), None, "{cut}");
        }
        for offset in [7_u32, 26, 1_000, u32::MAX] {
            let mut lost = exif.to_vec();
            lost[4..8].copy_from_slice(&offset.to_le_bytes());
            assert_eq!(Orientation::from_exif(&lost), None, "{offset}");
        }
        let mut many = exif.to_vec();
        many[8..10].copy_from_slice(&u16::MAX.to_le_bytes());
        many[10] = 0;
        assert_eq!(Orientation::from_exif(&many), None);
    }
}
