//! Making a picture smaller: each pixel becomes the average of the area that it covers.
//!
//! Promises: every pixel of the original counts as much as every other, parts of pixels too; a
//! pixel that is seen through gives no colour. Besides the result, memory is that of a row.
//! Must not know: formats, limits.

use super::pixels::DecodedPicture;

/// Makes the picture so small that no side is longer than this, in the same proportion.
pub(super) fn shrink_to(picture: &DecodedPicture, side: u32) -> Option<DecodedPicture> {
    let (width, height) = (picture.width(), picture.height());
    let ratio = f64::from(side) / f64::from(picture.longer_side());
    let scaled = |length: u32| ((f64::from(length) * ratio).round() as u32).clamp(1, length);
    let (new_width, new_height) = (scaled(width), scaled(height));
    let mut averages = Averages::new(picture.has_alpha(), new_width, new_height);
    let mut row_sums = vec![Sums::default(); new_width as usize];
    // Rows of the original are this long where those of the result are as long as the original
    // is high: so both are counted in whole numbers.
    let (row_share, area_share) = (u64::from(new_height), u64::from(height));
    let mut missing = area_share;
    for row in picture.rows() {
        sum_row(row, picture.channels(), u64::from(width), &mut row_sums);
        let mut share = row_share;
        while share > 0 {
            let taken = share.min(missing);
            averages.add(&row_sums, taken);
            share -= taken;
            missing -= taken;
            if missing == 0 {
                averages.finish_row(u64::from(width) * area_share);
                missing = area_share;
            }
        }
    }
    DecodedPicture::new(new_width, new_height, picture.has_alpha(), averages.bytes)
}

/// Sums of the channels of an area, each pixel weighed by its share in it and by its alpha.
#[derive(Clone, Copy, Default)]
struct Sums {
    colours: [u64; 3],
    alpha: u64,
}

impl Sums {
    fn add(&mut self, other: &Self, times: u64) {
        for (sum, more) in self.colours.iter_mut().zip(other.colours) {
            *sum += more * times;
        }
        self.alpha += other.alpha * times;
    }

    fn of_pixel(pixel: &[u8]) -> Self {
        match *pixel {
            [red, green, blue, alpha] => {
                let alpha = u64::from(alpha);
                let colours = [red, green, blue].map(|colour| u64::from(colour) * alpha);
                Self { colours, alpha }
            }
            [red, green, blue] => Self { colours: [red, green, blue].map(u64::from), alpha: 1 },
            _ => Self::default(),
        }
    }
}

/// Adds up one row of the original for each pixel of the result.
fn sum_row(row: &[u8], channels: usize, width: u64, row_sums: &mut [Sums]) {
    row_sums.fill(Sums::default());
    let pixel_share = row_sums.len() as u64;
    let (mut at, mut missing) = (0, width);
    for pixel in row.chunks_exact(channels) {
        let pixel = Sums::of_pixel(pixel);
        let mut share = pixel_share;
        while share > 0 {
            let taken = share.min(missing);
            row_sums[at].add(&pixel, taken);
            share -= taken;
            missing -= taken;
            if missing == 0 {
                at += 1;
                missing = width;
            }
        }
    }
}

/// Rows of the result, and the sums for the one that is being made.
struct Averages {
    has_alpha: bool,
    sums: Vec<Sums>,
    bytes: Vec<u8>,
}

impl Averages {
    fn new(has_alpha: bool, width: u32, height: u32) -> Self {
        let channels = if has_alpha { 4 } else { 3 };
        let bytes = Vec::with_capacity(width as usize * height as usize * channels);
        Self { has_alpha, sums: vec![Sums::default(); width as usize], bytes }
    }

    fn add(&mut self, row_sums: &[Sums], times: u64) {
        for (sums, row_sums) in self.sums.iter_mut().zip(row_sums) {
            sums.add(row_sums, times);
        }
    }

    fn finish_row(&mut self, area: u64) {
        let average = |sum: u64, weight: u64| {
            (sum + weight / 2).checked_div(weight).map_or(0, |average| average as u8)
        };
        for sums in &mut self.sums {
            // Without an alpha channel, every share of a pixel has added itself to `alpha`.
            let colours = sums.colours.map(|sum| average(sum, sums.alpha));
            self.bytes.extend_from_slice(&colours);
            if self.has_alpha {
                self.bytes.push(average(sums.alpha, area));
            }
            *sums = Sums::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shrunk(picture: &DecodedPicture, side: u32) -> Vec<u8> {
        shrink_to(picture, side).unwrap().bytes().to_vec()
    }

    fn row(pixels: &[[u8; 3]]) -> DecodedPicture {
        DecodedPicture::new(pixels.len() as u32, 1, false, pixels.concat()).unwrap()
    }

    #[test]
    fn parts_of_pixels_count_as_much_as_is_covered_of_them() {
        let three = row(&[[0; 3], [90; 3], [255; 3]]);
        assert_eq!(shrunk(&three, 2), [[30; 3], [200; 3]].concat());
        assert_eq!(shrunk(&three, 1), [115; 3]);
        assert_eq!(shrunk(&three, 3), three.bytes());
        let column = DecodedPicture::new(1, 3, false, three.bytes().to_vec()).unwrap();
        assert_eq!(shrunk(&column, 2), [[30; 3], [200; 3]].concat());
    }

    #[test]
    fn one_colour_stays_that_colour_at_every_size() {
        for (width, height) in [(7, 5), (1, 9), (640, 3), (13, 13)] {
            let pixels = [9, 99, 255].repeat(width as usize * height as usize);
            let picture = DecodedPicture::new(width, height, false, pixels).unwrap();
            for side in 1..picture.longer_side().min(40) {
                let small = shrink_to(&picture, side).unwrap();
                assert_eq!(small.longer_side(), side);
                assert!(small.bytes().as_chunks().0.iter().all(|pixel| *pixel == [9, 99, 255]));
            }
        }
    }

    #[test]
    fn what_is_seen_through_gives_no_colour() {
        let edge = [[200, 100, 50, 255], [0, 0, 0, 0]].concat();
        let edge = DecodedPicture::new(2, 1, true, edge).unwrap();
        assert_eq!(shrunk(&edge, 1), [200, 100, 50, 128]);
        let nothing = DecodedPicture::new(2, 1, true, vec![7, 7, 7, 0, 9, 9, 9, 0]).unwrap();
        assert_eq!(shrunk(&nothing, 1), [0; 4]);
    }
}
