//! Pictures that tests make, and read again: rows of bytes, three or four to a pixel.
//!
//! Promises: what is read is what a decoder of the format sees, without any code of the crate.
//! Must not know: limits, targets, how pictures are made smaller.

use std::borrow::Cow;
use std::io::Cursor;

use zune_jpeg::JpegDecoder;

/// Pixels in rows from the top, each of three or four bytes.
pub(crate) struct Made {
    pub(crate) width: u32,
    pub(crate) height: u32,
    channels: usize,
    bytes: Vec<u8>,
}

impl Made {
    pub(crate) fn from_fn<const N: usize>(
        width: u32,
        height: u32,
        mut pixel: impl FnMut(u32, u32) -> [u8; N],
    ) -> Self {
        let places = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        let bytes = places.flat_map(|(x, y)| pixel(x, y)).collect();
        Self { width, height, channels: N, bytes }
    }

    pub(crate) fn filled<const N: usize>(width: u32, height: u32, pixel: [u8; N]) -> Self {
        Self::from_fn(width, height, |_, _| pixel)
    }

    /// Reads a PNG or a JPEG.
    pub(crate) fn read(bytes: &[u8]) -> Self {
        if bytes.starts_with(b"\x89PNG") { Self::read_png(bytes) } else { Self::read_jpeg(bytes) }
    }

    fn read_png(bytes: &[u8]) -> Self {
        let mut reader = png::Decoder::new(Cursor::new(bytes)).read_info().unwrap();
        let mut read = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut read).unwrap();
        assert_eq!(info.bit_depth, png::BitDepth::Eight);
        let channels = info.color_type.samples();
        assert!(channels >= 3, "{:?}", info.color_type);
        Self { width: info.width, height: info.height, channels, bytes: read }
    }

    fn read_jpeg(bytes: &[u8]) -> Self {
        let mut decoder = JpegDecoder::new(Cursor::new(bytes));
        let read = decoder.decode().unwrap();
        let (width, height) = decoder.dimensions().unwrap();
        let (width, height) = (width.try_into().unwrap(), height.try_into().unwrap());
        Self { width, height, channels: 3, bytes: read }
    }

    pub(crate) fn pixel(&self, x: u32, y: u32) -> &[u8] {
        let at = (y as usize * self.width as usize + x as usize) * self.channels;
        &self.bytes[at..at + self.channels]
    }

    pub(crate) fn has_alpha(&self) -> bool {
        self.channels == 4
    }

    pub(crate) fn png(&self) -> Vec<u8> {
        self.png_with(png::Info::with_size(self.width, self.height))
    }

    /// A PNG with what else is in this header: a profile, a note of the camera.
    pub(crate) fn png_with(&self, info: png::Info<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        let mut encoder = png::Encoder::with_info(&mut out, info).unwrap();
        encoder.set_color(if self.has_alpha() {
            png::ColorType::Rgba
        } else {
            png::ColorType::Rgb
        });
        encoder.set_depth(png::BitDepth::Eight);
        encoder.write_header().unwrap().write_image_data(&self.bytes).unwrap();
        out
    }

    pub(crate) fn jpeg(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let encoder = jpeg_encoder::Encoder::new(&mut out, 75);
        let (width, height) = (self.width.try_into().unwrap(), self.height.try_into().unwrap());
        encoder.encode(&self.bytes, width, height, jpeg_encoder::ColorType::Rgb).unwrap();
        out
    }

    pub(crate) fn webp(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let colour = if self.has_alpha() {
            image_webp::ColorType::Rgba8
        } else {
            image_webp::ColorType::Rgb8
        };
        let encoder = image_webp::WebPEncoder::new(&mut out);
        encoder.encode(&self.bytes, self.width, self.height, colour).unwrap();
        out
    }
}

/// A rectangle of one colour of the palette in a GIF.
pub(crate) struct GifFrame {
    pub(crate) left: u16,
    pub(crate) top: u16,
    pub(crate) width: u16,
    pub(crate) height: u16,
    pub(crate) colour: u8,
}

/// Palette of every GIF made here: red, green, blue, and what is seen through.
pub(crate) const GIF_PALETTE: [u8; 12] = [255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255];
pub(crate) const GIF_SEEN_THROUGH: u8 = 3;

pub(crate) fn gif(width: u16, height: u16, frames: &[GifFrame]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = gif::Encoder::new(&mut out, width, height, &GIF_PALETTE).unwrap();
    for frame in frames {
        let pixels = usize::from(frame.width) * usize::from(frame.height);
        let frame = gif::Frame {
            left: frame.left,
            top: frame.top,
            width: frame.width,
            height: frame.height,
            transparent: Some(GIF_SEEN_THROUGH),
            buffer: Cow::Owned(vec![frame.colour; pixels]),
            ..gif::Frame::default()
        };
        encoder.write_frame(&frame).unwrap();
    }
    drop(encoder);
    out
}

/// A chunk of a PNG.
pub(crate) fn png_chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let named = [kind, data].concat();
    let length = u32::try_from(data.len()).unwrap().to_be_bytes();
    [&length[..], &named, &crc32(&named).to_be_bytes()].concat()
}

pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}
