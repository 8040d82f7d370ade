//! A decoded picture in memory: eight bits a channel, colours with or without an alpha channel.
//!
//! Promises: the bytes are always those of the size and the channels.
//! Must not know: formats, limits.

/// Rows from the top, without gaps: red, green and blue of each pixel, and perhaps its alpha.
#[derive(Debug, PartialEq)]
pub(super) struct DecodedPicture {
    width: u32,
    height: u32,
    has_alpha: bool,
    bytes: Vec<u8>,
}

impl DecodedPicture {
    /// Takes the bytes of a picture; `None` if there are more or fewer than its size says.
    pub(super) fn new(width: u32, height: u32, has_alpha: bool, bytes: Vec<u8>) -> Option<Self> {
        let picture = Self { width, height, has_alpha, bytes };
        let pixels = (width as usize).checked_mul(height as usize)?;
        let bytes = pixels.checked_mul(picture.channels())?;
        (pixels > 0 && bytes == picture.bytes.len()).then_some(picture)
    }

    /// Makes colours of a grey picture: a byte of light for each pixel.
    pub(super) fn from_grey(width: u32, height: u32, grey: &[u8]) -> Option<Self> {
        let bytes = grey.iter().flat_map(|light| [*light; 3]).collect();
        Self::new(width, height, false, bytes)
    }

    /// Makes colours of a grey picture with an alpha channel: two bytes for each pixel.
    pub(super) fn from_grey_alpha(width: u32, height: u32, grey: &[u8]) -> Option<Self> {
        let (pixels, _) = grey.as_chunks();
        let bytes = pixels.iter().flat_map(|&[light, alpha]| [light, light, light, alpha]);
        Self::new(width, height, true, bytes.collect())
    }

    pub(super) fn width(&self) -> u32 {
        self.width
    }

    pub(super) fn height(&self) -> u32 {
        self.height
    }

    pub(super) fn longer_side(&self) -> u32 {
        self.width.max(self.height)
    }

    pub(super) fn has_alpha(&self) -> bool {
        self.has_alpha
    }

    /// Bytes of a pixel.
    pub(super) fn channels(&self) -> usize {
        if self.has_alpha { 4 } else { 3 }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn rows(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.bytes.chunks_exact(self.width as usize * self.channels())
    }

    pub(super) fn pixel(&self, x: u32, y: u32) -> &[u8] {
        let at = (y as usize * self.width as usize + x as usize) * self.channels();
        &self.bytes[at..at + self.channels()]
    }

    /// Drops an alpha channel in which every pixel is opaque, in place: such a picture may become
    /// a JPEG.
    pub(super) fn drop_unused_alpha(&mut self) {
        let (pixels, _) = self.bytes.as_chunks::<4>();
        if !self.has_alpha || pixels.iter().any(|[_, _, _, alpha]| *alpha != 0xff) {
            return;
        }
        let pixels = pixels.len();
        for pixel in 0..pixels {
            self.bytes.copy_within(pixel * 4..pixel * 4 + 3, pixel * 3);
        }
        self.bytes.truncate(pixels * 3);
        self.has_alpha = false;
    }
}
