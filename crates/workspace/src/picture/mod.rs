//! Pictures made to fit the limits of a request: scaled down, converted, reduced to one frame.
//!
//! Promises: memory is bounded whatever a picture says of itself, and only one picture is decoded
//! at a time in the whole process; what cannot be decoded is left alone; what is given back is
//! under the limits or not given.
//! Must not know: messages, targets, where a picture came from.

mod cache;
mod decode;
mod encode;
mod orientation;
mod pixels;
mod resize;

use std::panic::{AssertUnwindSafe, catch_unwind};

use compositor::resolve::ImageLimits;
use parking_lot::Mutex;

use self::cache::FittedCache;
use self::decode::decode;
use self::encode::encode;
use self::pixels::DecodedPicture;
use self::resize::shrink_to;

/// The largest picture that is decoded: four bytes a pixel in memory, and as many again while it is
/// turned upright.
pub const PIXELS_MAX: u64 = 40_000_000;

/// Attempts at making a picture small enough.
const ATTEMPTS_MAX: usize = 6;

/// Its lock is held while a picture is decoded: each may take much memory, and there may be many
/// at once.
static CACHE: Mutex<FittedCache> = Mutex::new(FittedCache::new());

type Fitted = Option<(String, Vec<u8>)>;

/// Formats that are read. PNG and JPEG are written, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Png,
    Jpeg,
    Gif,
    WebP,
}

impl Format {
    fn from_mime(mime: &str) -> Option<Self> {
        [Self::Png, Self::Jpeg, Self::Gif, Self::WebP]
            .into_iter()
            .find(|format| format.mime() == mime)
    }

    fn mime(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::WebP => "image/webp",
        }
    }
}

/// Makes the picture what the limits want, with its type; `None` if it cannot be decoded or made
/// to fit.
pub fn fit(mime: &str, bytes: &[u8], limits: &ImageLimits) -> Fitted {
    let format = Format::from_mime(mime)?;
    let key = cache::key(mime, bytes, limits);
    let mut cache = CACHE.lock();
    if let Some(fitted) = cache.get(&key) {
        return fitted;
    }
    // A panic in a decoder loses a picture, not a turn.
    let fitted = catch_unwind(AssertUnwindSafe(|| {
        let picture = decode(format, bytes)?;
        shrink(picture, format, limits)
    }))
    .ok()
    .flatten();
    cache.insert(key, fitted.clone());
    fitted
}

/// Encodes it smaller and smaller until it fits.
fn shrink(
    mut picture: DecodedPicture,
    format: Format,
    limits: &ImageLimits,
) -> Option<(String, Vec<u8>)> {
    let bytes_max = limits.bytes_max.unwrap_or(u64::MAX);
    let mut side = picture.longer_side().min(limits.side_px_max.unwrap_or(u32::MAX));
    for _ in 0..ATTEMPTS_MAX {
        if side == 0 {
            return None;
        }
        if picture.longer_side() > side {
            picture = shrink_to(&picture, side)?;
        }
        let mut smallest = u64::MAX;
        for format_to_try in formats(&picture, format, limits) {
            let bytes = encode(&picture, format_to_try)?;
            let size = bytes.len() as u64;
            if size <= bytes_max {
                return Some((format_to_try.mime().to_owned(), bytes));
            }
            smallest = smallest.min(size);
        }
        if smallest == u64::MAX {
            return None;
        }
        side = next_side(side, smallest, bytes_max);
    }
    None
}

/// Estimates the side that fits: size is about proportional to the square of a side. It is a tenth
/// less, so that few attempts are enough.
fn next_side(side: u32, size: u64, bytes_max: u64) -> u32 {
    let factor = (bytes_max as f64 / size as f64).sqrt() * 0.9;
    (f64::from(side) * factor) as u32
}

/// Formats to encode it in, the preferred first: photographs stay JPEG, drawings keep their edges,
/// and only what is opaque becomes JPEG.
fn formats(picture: &DecodedPicture, format: Format, limits: &ImageLimits) -> Vec<Format> {
    let is_accepted = |format_to_try: &Format| {
        let mime = format_to_try.mime();
        limits.mimes.iter().any(|accepted| match accepted.strip_suffix('*') {
            Some(beginning) => mime.starts_with(beginning),
            None => accepted == mime,
        })
    };
    let in_order = match (format, picture.has_alpha()) {
        (Format::Jpeg, false) => vec![Format::Jpeg, Format::Png],
        (_, false) => vec![Format::Png, Format::Jpeg],
        (_, true) => vec![Format::Png],
    };
    in_order.into_iter().filter(is_accepted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_limits_give_another_picture() {
        let limits = |side| ImageLimits {
            mimes: vec!["image/png".to_owned()],
            bytes_max: None,
            side_px_max: Some(side),
            animation: compositor::resolve::Animation::Allowed,
        };
        let picture = DecodedPicture::new(64, 32, false, vec![0; 64 * 32 * 3]).unwrap();
        let png = encode(&picture, Format::Png).unwrap();
        let sides = |side| {
            let (_, bytes) = fit("image/png", &png, &limits(side)).unwrap();
            compositor::image_header::dimensions(&bytes)
        };
        assert_eq!(sides(32), Some((32, 16)));
        assert_eq!(sides(16), Some((16, 8)));
        assert_eq!(sides(32), Some((32, 16)));
    }
}
