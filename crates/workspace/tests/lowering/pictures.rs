//! Real pictures, made smaller, and pictures that are not what they say.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use compositor::Part;
use compositor::image_header::{dimensions, is_animated_gif};
use compositor::lower::{Capabilities, Lowered, Target, lower};
use compositor::resolve::{Animation, ImageLimits};
use serde_json::json;
use workspace::picture::fit;
use workspace::{EmptyStore, WorkspaceSources};

use crate::made::{GifFrame, Made, crc32, gif};

/// Colours without order: nothing makes them small.
fn noise(width: u32, height: u32) -> Made {
    noise_with(width, height, |[r, g, b, _]| [r, g, b])
}

fn noise_with<const N: usize>(width: u32, height: u32, pixel: impl Fn([u8; 4]) -> [u8; N]) -> Made {
    let mut state = 0x2545_f491_u32;
    Made::from_fn(width, height, |_, _| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        pixel(state.to_le_bytes())
    })
}

fn moving_gif() -> Vec<u8> {
    let frame = |colour| GifFrame { left: 0, top: 0, width: 16, height: 8, colour };
    gif(16, 8, &[frame(0), frame(2)])
}

fn limits(mimes: &[&str], bytes_max: Option<u64>, side_px_max: Option<u32>) -> ImageLimits {
    ImageLimits {
        mimes: mimes.iter().map(|mime| (*mime).to_owned()).collect(),
        bytes_max,
        side_px_max,
        animation: Animation::Allowed,
    }
}

const ALL: &[&str] = &["image/png", "image/jpeg", "image/webp", "image/gif"];

/// A PNG that says it is so large and has next to nothing in it.
fn bomb(width: u32, height: u32) -> Vec<u8> {
    let mut png = Made::filled(1, 1, [0, 0, 0]).png();
    png[16..20].copy_from_slice(&width.to_be_bytes());
    png[20..24].copy_from_slice(&height.to_be_bytes());
    let checksum = crc32(&png[12..29]);
    png[29..33].copy_from_slice(&checksum.to_be_bytes());
    png
}

#[test]
fn too_many_pixels_become_fewer_in_the_same_proportion() {
    let wide = Made::filled(400, 100, [9, 9, 200]);
    for (mime, wide) in
        [("image/png", wide.png()), ("image/jpeg", wide.jpeg()), ("image/webp", wide.webp())]
    {
        let (mime, small) = fit(mime, &wide, &limits(ALL, None, Some(200))).unwrap();
        assert_eq!(dimensions(&small), Some((200, 50)), "{mime}");
        let picture = Made::read(&small);
        let [r, _, b] = *picture.pixel(100, 25) else { panic!("{mime}") };
        assert!(r < 20 && b > 180, "{mime}: {r} {b}");
    }
}

#[test]
fn too_many_bytes_become_fewer() {
    let large = noise(300, 300).png();
    assert!(large.len() > 200_000);
    for most in [150_000, 50_000, 5_000] {
        let (mime, small) = fit("image/png", &large, &limits(ALL, Some(most), None)).unwrap();
        assert!(small.len() as u64 <= most, "{most}: {}", small.len());
        assert_eq!(compositor::media_type::detect(&small), Some(mime.as_str()));
        assert!(Made::read(&small).width > 0);
    }
    let (mime, small) =
        fit("image/png", &large, &limits(&["image/png"], Some(50_000), None)).unwrap();
    assert!(mime == "image/png" && small.len() <= 50_000);
    assert_eq!(fit("image/png", &large, &limits(ALL, Some(10), None)), None);
}

#[test]
fn transparency_is_preserved() {
    let glass = noise_with(200, 200, |[r, g, b, _]| [r, g, b, 100]).png();
    let (mime, small) = fit("image/png", &glass, &limits(ALL, Some(20_000), None)).unwrap();
    assert_eq!(mime, "image/png");
    assert!(small.len() <= 20_000);
    assert_eq!(Made::read(&small).pixel(0, 0)[3], 100);
    assert_eq!(fit("image/png", &glass, &limits(&["image/jpeg"], None, None)), None);
}

#[test]
fn a_gif_becomes_its_first_picture() {
    let moving = moving_gif();
    assert!(is_animated_gif(&moving));
    assert_eq!(dimensions(&moving), Some((16, 8)));
    let (mime, still) = fit("image/gif", &moving, &limits(&["image/png"], None, None)).unwrap();
    assert_eq!((mime.as_str(), dimensions(&still)), ("image/png", Some((16, 8))));
    assert_eq!(Made::read(&still).pixel(0, 0), [255, 0, 0]);
    let one = gif(3, 3, &[GifFrame { left: 0, top: 0, width: 3, height: 3, colour: 0 }]);
    assert!(!is_animated_gif(&one));
}

#[test]
fn a_header_cannot_ask_for_memory() {
    for (width, height) in [(60_000, 60_000), (32_000, 32_000), (u32::MAX >> 1, 1), (7_000, 7_000)]
    {
        let bomb = bomb(width, height);
        assert_eq!(dimensions(&bomb), Some((width, height)));
        assert_eq!(fit("image/png", &bomb, &limits(ALL, None, Some(100))), None);
    }
}

#[test]
fn undecodable_pictures_are_left_alone() {
    let whole = noise(64, 64).png();
    let of = |bytes: &[u8]| fit("image/png", bytes, &limits(ALL, None, Some(32)));
    assert!(of(&whole).is_some());
    for cut in [0, 8, 20, 33, 60, whole.len() / 2, whole.len() - 20] {
        assert_eq!(of(&whole[..cut]), None, "cut at {cut}");
    }
    assert_eq!(of(b"\x89PNG\r\n\x1a\nnot at all"), None);
    assert_eq!(fit("image/heic", &whole, &limits(ALL, None, None)), None);
    assert_eq!(fit("text/plain", &whole, &limits(ALL, None, None)), None);
}

#[test]
fn a_photograph_is_turned_upright() {
    let jpeg = Made::from_fn(40, 20, |x, _| if x < 20 { [255; 3] } else { [0; 3] }).jpeg();
    // Turned to the right by a note of the camera.
    let exif =
        b"\xff\xe1\0\x22Exif\0\0II\x2a\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
    let noted = [&jpeg[..2], exif, &jpeg[2..]].concat();
    let (_, upright) = fit("image/jpeg", &noted, &limits(ALL, None, Some(40))).unwrap();
    assert_eq!(dimensions(&upright), Some((20, 40)));
    let upright = Made::read(&upright);
    assert!(upright.pixel(10, 5)[0] > 200 && upright.pixel(10, 35)[0] < 50);
}

fn lowered(target: Target, name: &str, mime: &str, body: &[u8]) -> Lowered {
    let part = json!({"type": "file-attachment", "name": name, "mime": mime, "data": STANDARD.encode(body)});
    let parts = [Part::from_value(part).unwrap()];
    let mut sources = WorkspaceSources { workspace: None, store: EmptyStore };
    let capabilities = Capabilities::built_in(target);
    lower(&parts, &BTreeMap::new(), target, &capabilities, &mut sources)
}

#[test]
fn a_picture_of_more_than_a_target_takes_reaches_it_smaller() {
    let large = noise(1_200, 1_200).png();
    assert!(large.len() > 3_932_160, "{}", large.len());
    let lowered = lowered(Target::Anthropic, "large.png", "image/png", &large);
    let source = &lowered.blocks[0]["source"];
    assert!(source["data"].as_str().unwrap().len() <= 5 * 1_024 * 1_024);
    assert_eq!(
        lowered.diagnostics,
        ["attachment: 'large.png': the image was scaled down for anthropic"]
    );
}

#[test]
fn a_gif_reaches_gemini_as_png_and_a_decompression_bomb_is_not_sent() {
    let block = lowered(Target::Gemini, "g.gif", "image/gif", &moving_gif()).blocks.remove(0);
    assert_eq!(block["inlineData"]["mimeType"], "image/png");
    let bomb = bomb(60_000, 60_000);
    let lowered = lowered(Target::Anthropic, "b.png", "image/png", &bomb);
    let size = bomb.len();
    let text = format!(
        "<file_attachment name=\"b.png\" mime=\"image/png\" size=\"{size}\" omitted=\"too_large\"/>"
    );
    assert_eq!(lowered.blocks, [json!({"type": "text", "text": text})]);
    assert_eq!(lowered.diagnostics.len(), 1);
}
