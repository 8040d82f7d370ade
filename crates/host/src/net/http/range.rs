//! Ranges of content, as players of sound and film ask for them.
//!
//! Promises: a range is within the content, or refused; what is not one plain range means the whole.
//! Must not know: what the content is.

use std::ops::Range;

/// Which part is to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RequestedPart {
    Whole,
    Part(Range<usize>),
    /// Outside of what there is.
    Nothing,
}

/// `asked` is the header `Range`, `length` what there is.
pub(super) fn find_part(asked: Option<&str>, length: usize) -> RequestedPart {
    let Some(range) = asked.and_then(|asked| asked.trim().strip_prefix("bytes=")) else {
        return RequestedPart::Whole;
    };
    // Several ranges would need an answer in parts, which no player asks for.
    let Some((first, last)) = range.trim().split_once('-').filter(|_| !range.contains(',')) else {
        return RequestedPart::Whole;
    };
    let number = |text: &str| {
        if text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() {
            // One that is too long for a number is behind everything.
            Some(text.parse().unwrap_or(usize::MAX))
        } else {
            None
        }
    };
    let part = match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => first..last.saturating_add(1).min(length),
        (Some(first), None) if last.is_empty() => first..length,
        (None, Some(count)) if first.is_empty() => length.saturating_sub(count)..length,
        _ => return RequestedPart::Whole,
    };
    if part.start < part.end { RequestedPart::Part(part) } else { RequestedPart::Nothing }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_is_found_and_anything_odd_means_the_whole() {
        let find = |asked: &str| find_part(Some(asked), 100);
        assert_eq!(find("bytes=0-9"), RequestedPart::Part(0..10));
        assert_eq!(find("bytes=90-"), RequestedPart::Part(90..100));
        assert_eq!(find("bytes=-5"), RequestedPart::Part(95..100));
        assert_eq!(find("bytes=-500"), RequestedPart::Part(0..100));
        assert_eq!(find("bytes=50-9999999999999999999999"), RequestedPart::Part(50..100));
        for outside in ["bytes=100-", "bytes=100-200", "bytes=-0", "bytes=99999999999999999999999-"]
        {
            assert_eq!(find(outside), RequestedPart::Nothing, "{outside}");
        }
        for odd in [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=9-0",
            "bytes=a-b",
            "bytes=0-1,4-5",
            "items=0-1",
            "bytes=+1-2",
        ] {
            assert_eq!(find(odd), RequestedPart::Whole, "{odd}");
        }
        assert_eq!(find_part(None, 100), RequestedPart::Whole);
        assert_eq!(find_part(Some("bytes=0-"), 0), RequestedPart::Nothing);
    }
}
