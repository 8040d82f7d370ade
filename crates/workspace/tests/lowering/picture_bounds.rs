//! Pictures that are made to cost memory or to break their decoder, and what of them is still read.

use std::time::{Duration, Instant};

use compositor::image_header::dimensions;
use compositor::resolve::{Animation, ImageLimits};
use workspace::picture::fit;

use crate::made::{GifFrame, Made, gif, png_chunk};

fn fitted(mime: &str, bytes: &[u8]) -> Option<(String, Vec<u8>)> {
    let limits = ImageLimits {
        mimes: vec!["image/png".to_owned()],
        bytes_max: None,
        side_px_max: Some(64),
        animation: Animation::Allowed,
    };
    fit(mime, bytes, &limits)
}

/// A PNG of one bit a pixel, whole and valid.
fn large_png(width: u32, height: u32) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, width, height);
    encoder.set_depth(png::BitDepth::One);
    encoder.set_filter(png::Filter::NoFilter);
    let row = (width as usize).div_ceil(8);
    let rows = vec![0; row * height as usize];
    encoder.write_header().unwrap().write_image_data(&rows).unwrap();
    out
}

#[test]
fn a_whole_picture_of_too_many_pixels_is_refused_at_once() {
    // A little more than 40 million pixels, and a side that is a little too long.
    for (width, height) in [(20_000, 2_001), (40_000_001, 1), (32_769, 1), (1, 32_769)] {
        let large = large_png(width, height);
        let started = Instant::now();
        assert_eq!(fitted("image/png", &large), None, "{width} {height}");
        assert!(started.elapsed() < Duration::from_secs(1), "{width} {height}");
    }
    let (_, png) = fitted("image/png", &large_png(32_768, 2)).unwrap();
    assert_eq!(dimensions(&png), Some((64, 1)));
}

#[test]
fn a_header_of_any_format_cannot_ask_for_memory() {
    let wide = Made::filled(16, 16, [1, 2, 3]);
    let mut jpeg = wide.jpeg();
    let frame = memchr::memmem::find(&jpeg, b"\xff\xc0").unwrap();
    jpeg[frame + 5..frame + 9].copy_from_slice(b"\xff\x00\xff\x00");
    let mut webp = wide.webp();
    webp[21..25].copy_from_slice(b"\xff\xff\xff\x0f");
    let mut lossy = include_bytes!("samples/lossy.webp").to_vec();
    lossy[26..30].copy_from_slice(b"\xff\x3f\xff\x3f");
    // The frame of a picture with a canvas is larger than the canvas says.
    let mut canvas = include_bytes!("samples/lossy_turned.webp").to_vec();
    let frame = memchr::memmem::find(&canvas, b"\x9d\x01\x2a").unwrap();
    canvas[frame + 3..frame + 7].copy_from_slice(b"\xff\x3f\xff\x3f");
    let mut animated = include_bytes!("samples/moving.webp").to_vec();
    let frame = memchr::memmem::find(&animated, b"\x9d\x01\x2a").unwrap();
    animated[frame + 3..frame + 7].copy_from_slice(b"\xff\x3f\xff\x3f");
    let screen = gif(u16::MAX, u16::MAX, &[]);
    let frame = GifFrame { left: 0, top: 0, width: 8, height: 8, colour: 0 };
    let mut large_frame = gif(8, 8, &[frame]);
    let descriptor = memchr::memmem::find(&large_frame, b"\x2c\0\0\0\0\x08\0\x08\0").unwrap();
    large_frame[descriptor + 5..descriptor + 9].copy_from_slice(&[0xff; 4]);
    let liars = [
        ("image/jpeg", jpeg),
        ("image/webp", webp),
        ("image/webp", lossy),
        ("image/webp", canvas),
        ("image/webp", animated),
        ("image/gif", screen),
        ("image/gif", large_frame),
    ];
    for (at, (mime, bytes)) in liars.iter().enumerate() {
        assert_eq!(fitted(mime, bytes), None, "{at}: {mime}");
    }
}

#[test]
fn a_colour_profile_or_a_text_of_any_size_costs_the_picture_nothing() {
    let picture = Made::filled(16, 8, [1, 2, 3]);
    let mut info = png::Info::with_size(16, 8);
    info.icc_profile = Some(vec![0; 8 << 20].into());
    let profiled = picture.png_with(info);
    let png = picture.png();
    // The text is not even compressed as it says.
    let text = png_chunk(b"zTXt", &[&b"Comment\0\0"[..], &[0x78; 1 << 20]].concat());
    let with_text = [&png[..33], &text, &png[33..]].concat();
    let profile = png_chunk(b"iCCP", b"name\0\0not compressed at all");
    let with_nonsense = [&png[..33], &profile, &png[33..]].concat();
    for bytes in [&profiled, &with_text, &with_nonsense] {
        let (_, fitted) = fitted("image/png", bytes).unwrap();
        assert_eq!(Made::read(&fitted).pixel(15, 7), [1, 2, 3]);
    }
    // A chunk that ends after the file.
    let mut cut = [&png[..33], &text].concat();
    cut[33..37].copy_from_slice(&0x7fff_ffff_u32.to_be_bytes());
    assert_eq!(fitted("image/png", &cut), None);
}

#[test]
fn a_note_of_a_camera_that_lies_about_its_size_is_ignored() {
    let mut webp = include_bytes!("samples/lossy_turned.webp").to_vec();
    let exif = memchr::memmem::find(&webp, b"EXIF").unwrap();
    webp[exif + 4..exif + 8].copy_from_slice(&0xf000_0000_u32.to_le_bytes());
    let (_, png) = fitted("image/webp", &webp).unwrap();
    assert_eq!(dimensions(&png), Some((32, 16)), "not turned");
}

#[test]
fn cut_and_damaged_pictures_of_every_format_end_without_a_panic() {
    let picture = Made::from_fn(24, 24, |x, y| [(x * 10) as u8, (y * 10) as u8, (x * y) as u8]);
    let frame = GifFrame { left: 0, top: 0, width: 24, height: 24, colour: 1 };
    let whole = [
        ("image/png", picture.png()),
        ("image/jpeg", picture.jpeg()),
        ("image/webp", picture.webp()),
        ("image/webp", include_bytes!("samples/lossy.webp").to_vec()),
        ("image/webp", include_bytes!("samples/moving.webp").to_vec()),
        ("image/gif", gif(24, 24, &[frame])),
    ];
    for (mime, bytes) in whole {
        assert!(fitted(mime, &bytes).is_some(), "{mime}");
        for cut in (0..bytes.len()).step_by(7) {
            let _ = fitted(mime, &bytes[..cut]);
        }
        for at in (0..bytes.len()).step_by(5) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x55;
            let _ = fitted(mime, &damaged);
        }
        assert_eq!(fitted(mime, b""), None, "{mime}");
    }
}
