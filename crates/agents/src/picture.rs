//! Pictures are made to fit what a model takes: scaled down, converted, stilled.
//!
//! Promises: memory is bounded whatever a picture says of itself, and only one picture is decoded at a time in the
//! whole process; what cannot be decoded is left alone; what is given back is under the limits or not given. It
//! blocks and computes: it is for threads that may.
//! Must not know: messages, targets, where a picture came from.

use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use compositor::resolve::PictureLimits;
use image::codecs::jpeg::JpegEncoder;
use image::{DynamicImage, ImageDecoder as _, ImageFormat, ImageReader, Limits};

/// The largest picture that is decoded: four bytes a pixel in memory, and as many again while it is turned upright.
const PIXELS_MAX: u64 = 40_000_000;
const DECODED_BYTES_MAX: u64 = PIXELS_MAX * 4;
/// No longer side than this, so that a header cannot ask for rows without end.
const SIDE_PX_MAX: u32 = 32_768;

const JPEG_QUALITY: u8 = 85;
/// How often a picture is made smaller before it is given up.
const TRIES_MAX: usize = 6;

/// Pictures wait for each other: each may take much memory, and there may be many at once.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The picture as the limits want it, with its type; `None` if it cannot be decoded or made to fit.
pub fn fit(mime: &str, bytes: &[u8], limits: &PictureLimits) -> Option<(String, Vec<u8>)> {
    let format = ImageFormat::from_mime_type(mime)?;
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    // A mistake in a decoder costs a picture, not a turn.
    catch_unwind(AssertUnwindSafe(|| {
        let picture = decode(format, bytes)?;
        shrink(picture, format, limits)
    }))
    .ok()?
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
    // What a camera noted about up and down is lost with the rest of its notes: it is done instead.
    let upright = decoder.orientation().ok();
    let mut picture = DynamicImage::from_decoder(decoder).ok()?;
    if let Some(upright) = upright {
        picture.apply_orientation(upright);
    }
    Some(without_idle_alpha(picture))
}

/// Many pictures could be seen through and are not: those may become photographs.
fn without_idle_alpha(picture: DynamicImage) -> DynamicImage {
    let is_opaque = |pixels: &image::RgbaImage| pixels.pixels().all(|pixel| pixel.0[3] == 0xff);
    match picture.as_rgba8().is_some_and(is_opaque) {
        true => DynamicImage::ImageRgb8(picture.into_rgb8()),
        false => picture,
    }
}

/// Encodes it smaller and smaller until it fits.
fn shrink(
    mut picture: DynamicImage,
    format: ImageFormat,
    limits: &PictureLimits,
) -> Option<(String, Vec<u8>)> {
    let bytes_max = limits.bytes_max.unwrap_or(u64::MAX);
    let mut side = longer_side(&picture).min(limits.side_px_max.unwrap_or(u32::MAX));
    for _ in 0..TRIES_MAX {
        if side == 0 {
            return None;
        }
        if longer_side(&picture) > side {
            picture = picture.thumbnail(side, side);
        }
        let mut smallest = u64::MAX;
        for wanted in formats(&picture, format, limits) {
            let bytes = encode(&picture, wanted)?;
            let size = bytes.len() as u64;
            if size <= bytes_max {
                return Some((wanted.to_mime_type().to_owned(), bytes));
            }
            smallest = smallest.min(size);
        }
        if smallest == u64::MAX {
            return None;
        }
        side = smaller(side, smallest, bytes_max);
    }
    None
}

fn longer_side(picture: &DynamicImage) -> u32 {
    picture.width().max(picture.height())
}

/// Bytes go about with the square of a side; a tenth less, so that few tries are enough.
fn smaller(side: u32, size: u64, bytes_max: u64) -> u32 {
    let factor = (bytes_max as f64 / size as f64).sqrt() * 0.9;
    (f64::from(side) * factor) as u32
}

/// What it may be encoded as, the preferred first: photographs stay what they are, drawings keep their edges, and only
/// what cannot be seen through becomes a photograph.
fn formats(
    picture: &DynamicImage,
    format: ImageFormat,
    limits: &PictureLimits,
) -> Vec<ImageFormat> {
    let is_taken = |wanted: &ImageFormat| {
        let mime = wanted.to_mime_type();
        limits
            .mimes
            .iter()
            .any(|taken| match taken.strip_suffix('*') {
                Some(beginning) => mime.starts_with(beginning),
                None => taken == mime,
            })
    };
    let in_order = match (format, picture.color().has_alpha()) {
        (ImageFormat::Jpeg, false) => vec![ImageFormat::Jpeg, ImageFormat::Png],
        (_, false) => vec![ImageFormat::Png, ImageFormat::Jpeg],
        (_, true) => vec![ImageFormat::Png],
    };
    in_order.into_iter().filter(is_taken).collect()
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
