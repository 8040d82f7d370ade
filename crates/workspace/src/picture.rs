//! Pictures made to fit the limits of a request: scaled down, converted, reduced to one frame.
//!
//! Promises: memory is bounded whatever a picture says of itself, and only one picture is decoded at a time in the
//! whole process; what cannot be decoded is left alone; what is given back is under the limits or not given.
//! Must not know: messages, targets, where a picture came from.

use std::collections::VecDeque;
use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use compositor::resolve::ImageLimits;
use image::codecs::jpeg::JpegEncoder;
use image::{DynamicImage, ImageDecoder as _, ImageFormat, ImageReader, Limits};
use sha2::{Digest as _, Sha256};

/// The largest picture that is decoded: four bytes a pixel in memory, and as many again while it is turned upright.
pub const PIXELS_MAX: u64 = 40_000_000;
const DECODED_BYTES_MAX: u64 = PIXELS_MAX * 4;
/// No longer side than this, so that a header cannot ask for rows without end.
const SIDE_PX_MAX: u32 = 32_768;

const JPEG_QUALITY: u8 = 85;
/// Attempts at making a picture small enough.
const ATTEMPTS_MAX: usize = 6;

/// Fitted pictures that are cached: a conversation is sent again in every round of every turn.
const CACHE_BYTES_MAX: usize = 32 * 1_024 * 1_024;
const CACHE_ENTRIES_MAX: usize = 256;

/// Its lock is held while a picture is decoded: each may take much memory, and there may be many at once.
static CACHE: Mutex<FittedCache> = Mutex::new(FittedCache::new());

type Fitted = Option<(String, Vec<u8>)>;

/// The picture as the limits want it, with its type; `None` if it cannot be decoded or made to fit.
pub fn fit(mime: &str, bytes: &[u8], limits: &ImageLimits) -> Fitted {
    let format = ImageFormat::from_mime_type(mime)?;
    let key = cache_key(mime, bytes, limits);
    let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
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

/// The same picture under the same limits becomes the same.
fn cache_key(mime: &str, bytes: &[u8], limits: &ImageLimits) -> [u8; 32] {
    let mut digest = Sha256::new();
    digest.update(format!("{mime} {limits:?}\n"));
    digest.update(bytes);
    digest.finalize().into()
}

/// Fitted pictures, the most recently used last.
struct FittedCache {
    entries: VecDeque<([u8; 32], Fitted)>,
    bytes: usize,
}

impl FittedCache {
    const fn new() -> Self {
        Self { entries: VecDeque::new(), bytes: 0 }
    }

    fn get(&mut self, key: &[u8; 32]) -> Option<Fitted> {
        let at = self.entries.iter().position(|(cached, _)| cached == key)?;
        let entry = self.entries.remove(at)?;
        let fitted = entry.1.clone();
        self.entries.push_back(entry);
        Some(fitted)
    }

    fn insert(&mut self, key: [u8; 32], fitted: Fitted) {
        let size = size_of(&fitted);
        if size > CACHE_BYTES_MAX {
            // It would push everything else out and still not fit.
            return;
        }
        self.bytes += size;
        self.entries.push_back((key, fitted));
        while self.bytes > CACHE_BYTES_MAX || self.entries.len() > CACHE_ENTRIES_MAX {
            let Some((_, oldest)) = self.entries.pop_front() else {
                break;
            };
            self.bytes -= size_of(&oldest);
        }
    }
}

fn size_of(fitted: &Fitted) -> usize {
    fitted.as_ref().map_or(0, |(_, bytes)| bytes.len())
}

fn decode(format: ImageFormat, bytes: &[u8]) -> Option<DynamicImage> {
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut limits = Limits::default();
    limits.max_image_width = Some(SIDE_PX_MAX);
    limits.max_image_height = Some(SIDE_PX_MAX);
    limits.max_alloc = Some(DECODED_BYTES_MAX);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().ok()?;
    let (width, height) = decoder.dimensions();
    let pixels = u64::from(width) * u64::from(height);
    if pixels > PIXELS_MAX || decoder.total_bytes() > DECODED_BYTES_MAX {
        return None;
    }
    // The orientation in a camera's metadata is lost with the rest of it: it is applied instead.
    let orientation = decoder.orientation().ok();
    let mut picture = DynamicImage::from_decoder(decoder).ok()?;
    if let Some(orientation) = orientation {
        picture.apply_orientation(orientation);
    }
    Some(drop_unused_alpha(picture))
}

/// Without an alpha channel in which every pixel is opaque: such a picture may become a JPEG.
fn drop_unused_alpha(picture: DynamicImage) -> DynamicImage {
    let is_opaque = |pixels: &image::RgbaImage| pixels.pixels().all(|pixel| pixel.0[3] == 0xff);
    if picture.as_rgba8().is_some_and(is_opaque) {
        DynamicImage::ImageRgb8(picture.into_rgb8())
    } else {
        picture
    }
}

/// Encodes it smaller and smaller until it fits.
fn shrink(
    mut picture: DynamicImage,
    format: ImageFormat,
    limits: &ImageLimits,
) -> Option<(String, Vec<u8>)> {
    let bytes_max = limits.bytes_max.unwrap_or(u64::MAX);
    let mut side = longer_side(&picture).min(limits.side_px_max.unwrap_or(u32::MAX));
    for _ in 0..ATTEMPTS_MAX {
        if side == 0 {
            return None;
        }
        if longer_side(&picture) > side {
            picture = picture.thumbnail(side, side);
        }
        let mut smallest = u64::MAX;
        for format_to_try in formats(&picture, format, limits) {
            let bytes = encode(&picture, format_to_try)?;
            let size = bytes.len() as u64;
            if size <= bytes_max {
                return Some((format_to_try.to_mime_type().to_owned(), bytes));
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

fn longer_side(picture: &DynamicImage) -> u32 {
    picture.width().max(picture.height())
}

/// Size is about proportional to the square of a side; a tenth less, so that few attempts are enough.
fn next_side(side: u32, size: u64, bytes_max: u64) -> u32 {
    let factor = (bytes_max as f64 / size as f64).sqrt() * 0.9;
    (f64::from(side) * factor) as u32
}

/// What it may be encoded as, the preferred first: photographs stay JPEG, drawings keep their edges, and only what is
/// opaque becomes JPEG.
fn formats(picture: &DynamicImage, format: ImageFormat, limits: &ImageLimits) -> Vec<ImageFormat> {
    let is_accepted = |format_to_try: &ImageFormat| {
        let mime = format_to_try.to_mime_type();
        limits.mimes.iter().any(|accepted| match accepted.strip_suffix('*') {
            Some(beginning) => mime.starts_with(beginning),
            None => accepted == mime,
        })
    };
    let in_order = match (format, picture.color().has_alpha()) {
        (ImageFormat::Jpeg, false) => vec![ImageFormat::Jpeg, ImageFormat::Png],
        (_, false) => vec![ImageFormat::Png, ImageFormat::Jpeg],
        (_, true) => vec![ImageFormat::Png],
    };
    in_order.into_iter().filter(is_accepted).collect()
}

fn encode(picture: &DynamicImage, format: ImageFormat) -> Option<Vec<u8>> {
    let mut out = Cursor::new(Vec::new());
    match format {
        ImageFormat::Jpeg => {
            let encoder = JpegEncoder::new_with_quality(&mut out, JPEG_QUALITY);
            picture.to_rgb8().write_with_encoder(encoder).ok()?;
        }
        _ if picture.color().has_alpha() => {
            picture.to_rgba8().write_to(&mut out, format).ok()?;
        }
        _ => picture.to_rgb8().write_to(&mut out, format).ok()?,
    }
    Some(out.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(bytes: usize) -> Fitted {
        Some(("image/png".to_owned(), vec![0; bytes]))
    }

    #[test]
    fn fitted_pictures_are_cached_up_to_a_bound() {
        let mut cache = FittedCache::new();
        let third = CACHE_BYTES_MAX / 3;
        for name in 0..3 {
            cache.insert([name; 32], fitted(third));
        }
        assert_eq!(cache.get(&[0; 32]), Some(fitted(third)), "used again: the latest");
        cache.insert([3; 32], fitted(third));
        assert_eq!(cache.get(&[1; 32]), None);
        assert!(cache.get(&[0; 32]).is_some() && cache.get(&[3; 32]).is_some());
        cache.insert([4; 32], fitted(CACHE_BYTES_MAX + 1));
        assert_eq!(cache.get(&[4; 32]), None);
        assert!(cache.bytes <= CACHE_BYTES_MAX);

        cache.insert([5; 32], None);
        assert_eq!(cache.get(&[5; 32]), Some(None), "a failure is cached, too");
        for name in 0..1_000_u32 {
            let mut key = [9; 32];
            key[..4].copy_from_slice(&name.to_le_bytes());
            cache.insert(key, None);
        }
        assert_eq!((cache.entries.len(), cache.bytes), (CACHE_ENTRIES_MAX, 0));
    }

    #[test]
    fn other_limits_give_another_picture() {
        let limits = |side| ImageLimits {
            mimes: vec!["image/png".to_owned()],
            bytes_max: None,
            side_px_max: Some(side),
            animation: compositor::resolve::Animation::Allowed,
        };
        let mut png = Cursor::new(Vec::new());
        let picture = DynamicImage::new_rgb8(64, 32);
        picture.write_to(&mut png, ImageFormat::Png).unwrap();
        let sides = |side| {
            let (_, bytes) = fit("image/png", png.get_ref(), &limits(side)).unwrap();
            compositor::image_header::dimensions(&bytes)
        };
        assert_eq!(sides(32), Some((32, 16)));
        assert_eq!(sides(16), Some((16, 8)));
        assert_eq!(sides(32), Some((32, 16)));
    }
}
