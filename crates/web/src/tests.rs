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
            brotli::Decompressor::new(packed, 4_096).read_to_end(&mut plain).unwrap();
            assert_eq!(plain, file.plain, "{}", file.path);
        }
        if let Some(packed) = file.gzip {
            let mut plain = Vec::new();
            flate2::read::GzDecoder::new(packed).read_to_end(&mut plain).unwrap();
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

/// Bytes of brotli that a first visit may load before the list of sessions can be used, and in how many files.
const FIRST_VISIT_MAX: usize = 60 * 1_024;
const FIRST_FILES_MAX: usize = 40;
/// The whole page, as a service worker loads it.
const ALL_MAX: usize = 114 * 1_024;

fn packed_size(file: &PageFile) -> usize {
    file.choose("br").bytes.len()
}

/// The page, and the scripts and styles that it names.
fn first_visit() -> Vec<&'static PageFile> {
    let page = find("/").unwrap();
    let text = std::str::from_utf8(page.plain).unwrap();
    let named: std::collections::BTreeSet<String> = text
        .split("\"/app/")
        .skip(1)
        .map(|part| format!("/app/{}", part.split('"').next().unwrap()))
        .collect();
    let mut files: Vec<_> = named.iter().map(|path| find(path).unwrap()).collect();
    files.push(page);
    files
}

#[test]
fn a_first_visit_stays_within_its_budget() {
    let first = first_visit();
    let bytes: usize = first.iter().map(|file| packed_size(file)).sum();
    let gzip: usize = first.iter().map(|file| file.choose("gzip").bytes.len()).sum();
    let rest = packed_size(find(&format!("/app/{DIGEST}/rest.json")).unwrap());
    println!("first visit: {bytes} bytes (gzip {gzip}) in {} files; the rest: {rest}", first.len());
    assert!(bytes <= FIRST_VISIT_MAX && gzip <= FIRST_VISIT_MAX, "{bytes}, gzip {gzip}");
    assert!(first.len() <= FIRST_FILES_MAX, "{}", first.len());
    assert!(bytes + rest <= ALL_MAX, "{bytes} and {rest}");
}

#[test]
fn the_rest_holds_what_no_first_visit_loads() {
    let packed = find(&format!("/app/{DIGEST}/rest.json")).unwrap();
    let rest: std::collections::BTreeMap<String, String> =
        serde_json::from_slice(packed.plain).unwrap();
    let prefix = format!("/app/{DIGEST}/");
    let first: Vec<&str> = first_visit().iter().map(|file| file.path).collect();
    let others = files().iter().filter(|file| file.is_immutable && file.path != packed.path);
    for file in others {
        let is_first = first.contains(&file.path);
        let name = file.path.strip_prefix(&prefix).unwrap();
        let text = rest.get(name).map(|text| text.as_bytes());
        assert_eq!(text, (!is_first).then_some(file.plain), "{}", file.path);
    }
}
