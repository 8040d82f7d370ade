//! Writing a picture as PNG or JPEG.
//!
//! Promises: a JPEG keeps the full resolution of its colours, so that coloured text stays sharp.
//! Must not know: limits.

use jpeg_encoder::{ColorType, Encoder, SamplingFactor};

use super::Format;
use super::pixels::DecodedPicture;

const JPEG_QUALITY: u8 = 85;

/// Encodes the picture; `None` for formats that are only read, and for alpha in a JPEG.
pub(super) fn encode(picture: &DecodedPicture, format: Format) -> Option<Vec<u8>> {
    match format {
        Format::Png => encode_png(picture),
        Format::Jpeg if !picture.has_alpha() => encode_jpeg(picture),
        Format::Jpeg | Format::Gif | Format::WebP => None,
    }
}

fn encode_png(picture: &DecodedPicture) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, picture.width(), picture.height());
    encoder.set_color(if picture.has_alpha() { png::ColorType::Rgba } else { png::ColorType::Rgb });
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Fast);
    encoder.set_filter(png::Filter::Adaptive);
    let mut writer = encoder.write_header().ok()?;
    writer.write_image_data(picture.bytes()).ok()?;
    writer.finish().ok()?;
    Some(out)
}

fn encode_jpeg(picture: &DecodedPicture) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out, JPEG_QUALITY);
    encoder.set_sampling_factor(SamplingFactor::F_1_1);
    let (width, height) = (picture.width().try_into().ok()?, picture.height().try_into().ok()?);
    encoder.encode(picture.bytes(), width, height, ColorType::Rgb).ok()?;
    Some(out)
}
