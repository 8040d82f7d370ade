//! Decoding a picture: its first frame, upright, in eight bits a channel.
//!
//! Promises: sizes are checked before anything is allocated for them, also those that a frame says
//! of itself; profiles and texts beside the picture are skipped unread.
//! Must not know: limits of a request, how a picture is encoded again.

use std::io::Cursor;
use std::num::NonZeroU64;

use gif::{ColorOutput, DecodeOptions, MemoryLimit};
use image_webp::WebPDecoder;
use memchr::memmem;
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::orientation::Orientation;
use super::pixels::DecodedPicture;
use super::{Format, PIXELS_MAX};

/// The longest side, so that a header cannot ask for rows without end.
const SIDE_PX_MAX: u32 = 32_768;
const DECODED_BYTES_MAX: u64 = PIXELS_MAX * 4;

/// Decodes the first frame, turns it upright, and drops an alpha channel that hides nothing.
pub(super) fn decode(format: Format, bytes: &[u8]) -> Option<DecodedPicture> {
    let (mut picture, orientation) = match format {
        Format::Png => decode_png(bytes)?,
        Format::Jpeg => decode_jpeg(bytes)?,
        Format::WebP => decode_webp(bytes)?,
        Format::Gif => (decode_gif(bytes)?, None),
    };
    // The orientation in a camera's metadata is lost with the rest of it: it is applied instead.
    if let Some(orientation) = orientation {
        picture = orientation.apply(&picture)?;
    }
    picture.drop_unused_alpha();
    Some(picture)
}

type Decoded = (DecodedPicture, Option<Orientation>);

fn is_decodable(width: u32, height: u32) -> bool {
    let pixels = u64::from(width) * u64::from(height);
    width.max(height) <= SIDE_PX_MAX && (1..=PIXELS_MAX).contains(&pixels)
}

fn decode_png(bytes: &[u8]) -> Option<Decoded> {
    let bytes_max = usize::try_from(DECODED_BYTES_MAX).ok()?;
    let limits = png::Limits { bytes: bytes_max };
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), limits);
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::STRIP_16);
    let header = decoder.read_header_info().ok()?;
    if !is_decodable(header.width, header.height) {
        return None;
    }
    let mut reader = decoder.read_info().ok()?;
    let (width, height) = reader.info().size();
    let orientation = reader.info().exif_metadata.as_deref().and_then(Orientation::from_exif);
    let mut read = vec![0; reader.output_buffer_size()?];
    let frame = reader.next_frame(&mut read).ok()?;
    if (frame.width, frame.height) != (width, height) {
        // The first frame of an animation has to be as large as the picture.
        return None;
    }
    let picture = match frame.color_type {
        png::ColorType::Grayscale => DecodedPicture::from_grey(width, height, &read)?,
        png::ColorType::GrayscaleAlpha => DecodedPicture::from_grey_alpha(width, height, &read)?,
        png::ColorType::Rgb => DecodedPicture::new(width, height, false, read)?,
        png::ColorType::Rgba => DecodedPicture::new(width, height, true, read)?,
        // Palettes are resolved by the decoder.
        png::ColorType::Indexed => return None,
    };
    Some((picture, orientation))
}

fn decode_jpeg(bytes: &[u8]) -> Option<Decoded> {
    let options = DecoderOptions::default()
        .set_strict_mode(false)
        .set_max_width(SIDE_PX_MAX as usize)
        .set_max_height(SIDE_PX_MAX as usize);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().ok()?;
    let (width, height) = decoder.dimensions()?;
    let (width, height) = (u32::try_from(width).ok()?, u32::try_from(height).ok()?);
    if !is_decodable(width, height) {
        return None;
    }
    let orientation = decoder.exif().and_then(|exif| Orientation::from_exif(exif));
    // The decoder makes colours of everything else, printing colours too.
    let is_grey = decoder.input_colorspace()? == ColorSpace::Luma;
    let colours = if is_grey { ColorSpace::Luma } else { ColorSpace::RGB };
    decoder.set_options(options.jpeg_set_out_colorspace(colours));
    let mut read = vec![0; decoder.output_buffer_size()?];
    decoder.decode_into(&mut read).ok()?;
    let picture = if is_grey {
        DecodedPicture::from_grey(width, height, &read)?
    } else {
        DecodedPicture::new(width, height, false, read)?
    };
    Some((picture, orientation))
}

fn decode_webp(bytes: &[u8]) -> Option<Decoded> {
    if has_undecodable_vp8_frame(bytes) {
        return None;
    }
    let mut decoder = WebPDecoder::new(Cursor::new(bytes)).ok()?;
    // No chunk is larger than the file, whatever it says.
    decoder.set_memory_limit(bytes.len());
    let (width, height) = decoder.dimensions();
    if !is_decodable(width, height) {
        return None;
    }
    let exif = decoder.exif_metadata().ok().flatten();
    let orientation = exif.as_deref().and_then(Orientation::from_exif);
    let mut read = vec![0; decoder.output_buffer_size()?];
    decoder.read_image(&mut read).ok()?;
    Some((DecodedPicture::new(width, height, decoder.has_alpha(), read)?, orientation))
}

/// Finds frames that say a size of their own above the bounds: the decoder allocates for them
/// before it compares them with the size of the picture. Lossless frames are compared first.
fn has_undecodable_vp8_frame(bytes: &[u8]) -> bool {
    memmem::find_iter(bytes, b"VP8 ").any(|chunk| {
        // Length of the chunk, three bytes of flags, start code, width and height.
        let Some([0x9d, 0x01, 0x2a, width_low, width_high, height_low, height_high]) =
            bytes.get(chunk + 11..).and_then(<[u8]>::first_chunk)
        else {
            return false;
        };
        let side = |low, high| u32::from(u16::from_le_bytes([low, high]) & 0x3fff);
        !is_decodable(side(*width_low, *width_high), side(*height_low, *height_high))
    })
}

fn decode_gif(bytes: &[u8]) -> Option<DecodedPicture> {
    let mut options = DecodeOptions::new();
    options.set_color_output(ColorOutput::RGBA);
    options.set_memory_limit(MemoryLimit::Bytes(NonZeroU64::new(DECODED_BYTES_MAX)?));
    let mut decoder = options.read_info(Cursor::new(bytes)).ok()?;
    let (width, height) = (u32::from(decoder.width()), u32::from(decoder.height()));
    if !is_decodable(width, height) {
        return None;
    }
    let frame = decoder.next_frame_info().ok()??;
    let (left, top) = (usize::from(frame.left), usize::from(frame.top));
    let (frame_width, frame_height) = (u32::from(frame.width), u32::from(frame.height));
    if !is_decodable(frame_width, frame_height) {
        return None;
    }
    let row_bytes = width as usize * 4;
    let mut screen = vec![0; row_bytes * height as usize];
    let frame_row_bytes = frame_width as usize * 4;
    let frame_bytes = frame_row_bytes * frame_height as usize;
    let covered = top * row_bytes..top * row_bytes + frame_bytes;
    if let Some(covered) = screen.get_mut(covered)
        && (left, frame_width) == (0, width)
    {
        // Its rows are those of the screen, so no second picture is needed.
        decoder.read_into_buffer(covered).ok()?;
        return DecodedPicture::new(width, height, true, screen);
    }
    let mut read = vec![0; frame_bytes];
    decoder.read_into_buffer(&mut read).ok()?;
    // Rows and columns outside the screen are cut off.
    let left_bytes = (left * 4).min(row_bytes);
    let copied_bytes = frame_row_bytes.min(row_bytes - left_bytes);
    let screen_rows = screen.chunks_exact_mut(row_bytes).skip(top);
    for (screen_row, frame_row) in screen_rows.zip(read.chunks_exact(frame_row_bytes)) {
        screen_row[left_bytes..left_bytes + copied_bytes]
            .copy_from_slice(&frame_row[..copied_bytes]);
    }
    DecodedPicture::new(width, height, true, screen)
}
