//! What is sent of the page's files.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

use std::io::Read;

use super::*;

#[test]
fn every_file_is_found_and_unpacks_to_itself() {
    for file in files() {
        assert_eq!(find(file.path).unwrap().path, file.path);
        if let Some(packed) = file.brotli {
            let mut plain = Vec::new();
            brotli::Decompressor::new(packed, 4_096)
                .read_to_end(&mut plain)
                .unwrap();
            assert_eq!(plain, file.plain, "{}", file.path);
        }
        if let Some(packed) = file.gzip {
            let mut plain = Vec::new();
            flate2::read::GzDecoder::new(packed)
                .read_to_end(&mut plain)
                .unwrap();
            assert_eq!(plain, file.plain, "{}", file.path);
        }
    }
    assert!(find("/app/").is_none() && find("/index.html").is_none());
}

#[test]
fn the_page_names_its_files_by_the_digest_and_loads_its_modules_first() {
    let page = find("/").unwrap();
    assert!(!page.is_immutable && page.content_type.starts_with("text/html"));
    let text = std::str::from_utf8(page.plain).unwrap();
    let mut links = 0;
    for part in text.split("\"/app/").skip(1) {
        let address = format!("/app/{}", part.split('"').next().unwrap());
        let file = find(&address).unwrap_or_else(|| panic!("{address} is not there"));
        assert!(file.is_immutable);
        links += 1;
    }
    assert!(links > 0);
    let main = format!("<link rel=\"modulepreload\" href=\"/app/{DIGEST}/js/main.js\">");
    assert!(text.contains(&main), "{text}");
}

#[test]
fn the_form_is_one_that_the_other_side_takes() {
    let page = find("/").unwrap();
    for (accept, encoding) in [
        ("gzip, deflate, br, zstd", Encoding::Brotli),
        ("gzip, deflate", Encoding::Gzip),
        ("br;q=0, gzip;q=0.5", Encoding::Gzip),
        ("BR", Encoding::Brotli),
        ("gzip;q=0.000", Encoding::Plain),
        ("x-br, bro", Encoding::Plain),
        ("", Encoding::Plain),
        ("*", Encoding::Plain),
    ] {
        let chosen = page.choose(accept);
        assert_eq!(chosen.encoding, encoding, "{accept}");
        assert!(page.is_known(&chosen.etag));
        assert!(page.is_known(&format!("\"x\", W/{}", chosen.etag)));
    }
    let tags = ["br", "gzip", ""].map(|accept| page.choose(accept).etag);
    assert!(tags[0] != tags[1] && tags[1] != tags[2]);
    assert!(!page.is_known("") && !page.is_known("\"other\"") && page.is_known("*"));
}
