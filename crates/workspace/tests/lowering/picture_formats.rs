//! Every kind of picture that a supported format can hold, read as a viewer would show it.

use compositor::image_header::dimensions;
use compositor::resolve::{Animation, ImageLimits};
use workspace::picture::fit;

use crate::made::{GIF_SEEN_THROUGH, GifFrame, Made, gif, png_chunk};

const RED: [u8; 3] = [220, 30, 20];
const BLUE: [u8; 3] = [20, 40, 200];

fn limits(mimes: &[&str]) -> ImageLimits {
    ImageLimits {
        mimes: mimes.iter().map(|mime| (*mime).to_owned()).collect(),
        bytes_max: None,
        side_px_max: None,
        animation: Animation::Allowed,
    }
}

/// The picture as a PNG, which loses nothing of what was decoded.
fn decoded(mime: &str, bytes: &[u8]) -> Made {
    let (fitted, png) = fit(mime, bytes, &limits(&["image/png"])).unwrap();
    assert_eq!(fitted, "image/png");
    Made::read(&png)
}

#[track_caller]
fn assert_near(seen: &[u8], wanted: &[u8], tolerance: u8) {
    let is_near = seen.len() == wanted.len()
        && seen.iter().zip(wanted).all(|(seen, wanted)| seen.abs_diff(*wanted) <= tolerance);
    assert!(is_near, "{seen:?} for {wanted:?}");
}

/// Checks a picture of 32 by 16 pixels with a left and a right half.
#[track_caller]
fn assert_halves(picture: &Made, left: &[u8], right: &[u8], tolerance: u8) {
    assert_eq!((picture.width, picture.height), (32, 16));
    for y in [1, 8, 14] {
        assert_near(picture.pixel(3, y), left, tolerance);
        assert_near(picture.pixel(28, y), right, tolerance);
    }
}

/// A PNG of one colour type and depth; `rows` are packed as the format wants them.
fn png_of(
    colour: png::ColorType,
    depth: png::BitDepth,
    rows: &[u8],
    palette: Option<&[u8]>,
    transparent: Option<&[u8]>,
) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, 32, 16);
    encoder.set_color(colour);
    encoder.set_depth(depth);
    if let Some(palette) = palette {
        encoder.set_palette(palette);
    }
    if let Some(transparent) = transparent {
        encoder.set_trns(transparent);
    }
    encoder.write_header().unwrap().write_image_data(rows).unwrap();
    out
}

/// Sixteen rows of 32 pixels: half of them one value, half of them the other.
fn halves<const N: usize>(left: [u8; N], right: [u8; N]) -> Vec<u8> {
    let row = [vec![left; 16], vec![right; 16]].concat();
    vec![row; 16].concat().concat()
}

#[test]
fn grey_and_deep_pngs_keep_their_colours() {
    use png::BitDepth::{Eight, One, Sixteen};
    use png::ColorType::{Grayscale, GrayscaleAlpha, Rgb, Rgba};
    let of =
        |colour, depth, rows: &[u8]| decoded("image/png", &png_of(colour, depth, rows, None, None));
    assert_halves(&of(Grayscale, Eight, &halves([40], [210])), &[40; 3], &[210; 3], 0);
    let bits = [0x00, 0x00, 0xff, 0xff].repeat(16);
    assert_halves(&of(Grayscale, One, &bits), &[0; 3], &[255; 3], 0);
    let deep = of(Grayscale, Sixteen, &halves([40, 40], [210, 0]));
    assert_halves(&deep, &[40; 3], &[209; 3], 1);
    let deep = of(Rgb, Sixteen, &halves([220, 220, 30, 30, 20, 20], [20, 20, 40, 40, 200, 200]));
    assert_halves(&deep, &RED, &BLUE, 0);
    let glass = of(GrayscaleAlpha, Eight, &halves([40, 100], [210, 255]));
    assert_halves(&glass, &[40, 40, 40, 100], &[210, 210, 210, 255], 0);
    let glass = halves([220, 220, 30, 30, 20, 20, 100, 100], [20, 20, 40, 40, 200, 200, 255, 255]);
    let glass = of(Rgba, Sixteen, &glass);
    assert_halves(&glass, &[220, 30, 20, 100], &[20, 40, 200, 255], 0);
}

#[test]
fn colours_of_a_palette_and_a_colour_that_is_seen_through_are_resolved() {
    use png::BitDepth::{Eight, Four};
    use png::ColorType::{Indexed, Rgb};
    let palette = [RED, BLUE].concat();
    let of = |depth, rows: &[u8], transparent| {
        decoded("image/png", &png_of(Indexed, depth, rows, Some(&palette), transparent))
    };
    assert_halves(&of(Eight, &halves([0], [1]), None), &RED, &BLUE, 0);
    let nibbles = [[0x00_u8; 8], [0x11; 8]].concat().repeat(16);
    assert_halves(&of(Four, &nibbles, None), &RED, &BLUE, 0);
    let glass = of(Eight, &halves([0], [1]), Some(&[100]));
    assert_halves(&glass, &[220, 30, 20, 100], &[20, 40, 200, 255], 0);
    let red = [0, 220, 0, 30, 0, 20];
    let hole = png_of(Rgb, Eight, &halves(RED, BLUE), None, Some(&red));
    assert_halves(&decoded("image/png", &hole), &[220, 30, 20, 0], &[20, 40, 200, 255], 0);
}

#[test]
fn interlaced_pngs_are_put_together() {
    let picture = decoded("image/png", include_bytes!("samples/interlaced.png"));
    assert_halves(&picture, &RED, &BLUE, 0);
}

#[test]
fn grey_progressive_and_printed_jpegs_keep_their_colours() {
    let jpeg = |bytes: &[u8]| decoded("image/jpeg", bytes);
    assert_halves(&jpeg(include_bytes!("samples/grey.jpg")), &[40; 3], &[210; 3], 3);
    assert_halves(&jpeg(include_bytes!("samples/progressive.jpg")), &RED, &BLUE, 6);
    assert_halves(&jpeg(include_bytes!("samples/cmyk.jpg")), &RED, &BLUE, 6);
    assert_halves(&jpeg(include_bytes!("samples/ycck.jpg")), &RED, &BLUE, 6);
}

#[test]
fn webps_keep_their_colours_and_what_is_seen_through() {
    let webp = |bytes: &[u8]| decoded("image/webp", bytes);
    assert_halves(&webp(include_bytes!("samples/lossy.webp")), &RED, &BLUE, 8);
    let glass = webp(include_bytes!("samples/lossy_glass.webp"));
    assert_halves(&glass, &[220, 30, 20, 100], &[20, 40, 200, 255], 8);
    let lossless = Made::from_fn(32, 16, |x, _| if x < 16 { RED } else { BLUE });
    assert_halves(&webp(&lossless.webp()), &RED, &BLUE, 0);
    let glass = Made::from_fn(32, 16, |x, _| if x < 16 { [9, 8, 7, 99] } else { [1, 2, 3, 255] });
    assert_halves(&webp(&glass.webp()), &[9, 8, 7, 99], &[1, 2, 3, 255], 0);
}

#[test]
fn animations_become_their_first_picture() {
    let webp = decoded("image/webp", include_bytes!("samples/moving.webp"));
    assert_halves(&webp, &RED, &BLUE, 8);
    for is_default_separate in [false, true] {
        let mut out = Vec::new();
        let mut encoder = png::Encoder::new(&mut out, 32, 16);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_animated(if is_default_separate { 1 } else { 2 }, 0).unwrap();
        encoder.set_sep_def_img(is_default_separate).unwrap();
        let mut writer = encoder.write_header().unwrap();
        writer.write_image_data(&halves(RED, BLUE)).unwrap();
        writer.write_image_data(&halves(BLUE, RED)).unwrap();
        writer.finish().unwrap();
        assert_halves(&decoded("image/png", &out), &RED, &BLUE, 0);
    }
}

#[test]
fn a_frame_of_a_gif_is_put_in_its_place_on_the_screen() {
    let of = |frame| decoded("image/gif", &gif(32, 16, &[frame]));
    let inside = of(GifFrame { left: 16, top: 4, width: 8, height: 8, colour: 2 });
    assert_eq!((inside.width, inside.height), (32, 16));
    assert_eq!(inside.pixel(16, 4), [0, 0, 255, 255]);
    assert_eq!(inside.pixel(23, 11), [0, 0, 255, 255]);
    for (x, y) in [(0, 0), (15, 4), (24, 11), (16, 3), (23, 12)] {
        assert_eq!(inside.pixel(x, y)[3], 0, "{x} {y}");
    }
    let band = of(GifFrame { left: 0, top: 4, width: 32, height: 8, colour: 0 });
    assert_eq!(band.pixel(31, 4), [255, 0, 0, 255]);
    assert_eq!((band.pixel(31, 3)[3], band.pixel(0, 12)[3]), (0, 0));
    // Larger than the screen: what is outside is cut off.
    let outside = of(GifFrame { left: 8, top: 0, width: 64, height: 64, colour: 1 });
    assert_eq!((outside.width, outside.height), (32, 16));
    assert_eq!((outside.pixel(7, 0)[3], outside.pixel(8, 0)), (0, &[0, 255, 0, 255][..]));
    let covering = of(GifFrame { left: 0, top: 0, width: 32, height: 64, colour: 1 });
    assert!(!covering.has_alpha(), "nothing is seen through any more");
    assert_eq!(covering.pixel(31, 15), [0, 255, 0]);
    let glass = of(GifFrame { left: 0, top: 0, width: 32, height: 16, colour: GIF_SEEN_THROUGH });
    assert_eq!(glass.pixel(5, 5)[3], 0);
}

/// A note of the camera with nothing in it but this orientation.
fn exif(orientation: u8, is_big_endian: bool) -> Vec<u8> {
    if is_big_endian {
        let entry = [0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0];
        [b"MM\0\x2a\0\0\0\x08\0\x01", &entry[..], &[0; 4]].concat()
    } else {
        let entry = [0x12, 0x01, 3, 0, 1, 0, 0, 0, orientation, 0, 0, 0];
        [b"II\x2a\0\x08\0\0\0\x01\0", &entry[..], &[0; 4]].concat()
    }
}

/// The same in a segment of a JPEG.
fn jpeg_with(exif: &[u8], jpeg: &[u8]) -> Vec<u8> {
    let length = u16::try_from(exif.len() + 8).unwrap().to_be_bytes();
    [&jpeg[..2], b"\xff\xe1", &length, b"Exif\0\0", exif, &jpeg[2..]].concat()
}

#[test]
fn every_orientation_that_a_camera_notes_is_applied() {
    // Sixteen by eight; one corner is marked.
    let marked = Made::from_fn(16, 8, |x, y| if x < 8 && y < 4 { RED } else { BLUE });
    let (png, jpeg) = (marked.png(), marked.jpeg());
    // Size, and where the marked corner is to be seen.
    let wanted = [
        (0, (16, 8), (2, 1)),
        (1, (16, 8), (2, 1)),
        (2, (16, 8), (13, 1)),
        (3, (16, 8), (13, 6)),
        (4, (16, 8), (2, 6)),
        (5, (8, 16), (1, 2)),
        (6, (8, 16), (6, 2)),
        (7, (8, 16), (6, 13)),
        (8, (8, 16), (1, 13)),
        (9, (16, 8), (2, 1)),
    ];
    for (orientation, size, (x, y)) in wanted {
        for is_big_endian in [false, true] {
            let exif = exif(orientation, is_big_endian);
            let png = [&png[..33], &png_chunk(b"eXIf", &exif), &png[33..]].concat();
            let pictures = [("image/png", png), ("image/jpeg", jpeg_with(&exif, &jpeg))];
            for (mime, picture) in pictures {
                let upright = decoded(mime, &picture);
                assert_eq!((upright.width, upright.height), size, "{mime} {orientation}");
                let corners = [
                    upright.pixel(1, 1),
                    upright.pixel(size.0 - 2, 1),
                    upright.pixel(1, size.1 - 2),
                    upright.pixel(size.0 - 2, size.1 - 2),
                ];
                let red = corners.iter().filter(|corner| corner[0] > 150).count();
                assert_eq!(red, 1, "{mime} {orientation}: {corners:?}");
                assert!(upright.pixel(x, y)[0] > 150, "{mime} {orientation}");
            }
        }
    }
}

#[test]
fn a_webp_is_turned_upright() {
    let turned = decoded("image/webp", include_bytes!("samples/lossy_turned.webp"));
    assert_eq!((turned.width, turned.height), (16, 32));
    assert_near(turned.pixel(8, 3), &RED, 8);
    assert_near(turned.pixel(8, 28), &BLUE, 8);
}

#[test]
fn opaque_pictures_with_an_alpha_channel_may_become_photographs() {
    let opaque = Made::from_fn(32, 16, |x, _| if x < 16 { [9, 8, 7, 255] } else { [1, 2, 3, 255] });
    for (mime, bytes) in [("image/png", opaque.png()), ("image/webp", opaque.webp())] {
        let (fitted, jpeg) = fit(mime, &bytes, &limits(&["image/jpeg"])).unwrap();
        assert_eq!((fitted.as_str(), dimensions(&jpeg)), ("image/jpeg", Some((32, 16))));
    }
}
