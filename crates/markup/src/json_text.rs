//! Strings and numbers as JSON, written into a buffer.
//!
//! Promises: what is written is valid JSON, whatever the text. Must not know: what is written around it.

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Writes a text as a string with its quotes.
pub(crate) fn write_string(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    let mut written = 0;
    for (at, byte) in bytes.iter().enumerate() {
        if !needs_escape(*byte) {
            continue;
        }
        out.extend_from_slice(bytes.get(written..at).unwrap_or_default());
        written = at + 1;
        write_escape(out, *byte);
    }
    out.extend_from_slice(bytes.get(written..).unwrap_or_default());
    out.push(b'"');
}

fn needs_escape(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

fn write_escape(out: &mut Vec<u8>, byte: u8) {
    let short = match byte {
        b'\n' => b'n',
        b'\t' => b't',
        b'\r' => b'r',
        b'"' | b'\\' => byte,
        _ => {
            let digits = [byte >> 4, byte & 0xf].map(|digit| HEX[usize::from(digit)]);
            out.extend_from_slice(b"\\u00");
            return out.extend_from_slice(&digits);
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// Writes a whole number.
pub(crate) fn write_number(out: &mut Vec<u8>, number: u64) {
    if number >= 10 {
        write_number(out, number / 10); // at most twenty digits
    }
    out.push(b'0' + (number % 10) as u8);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_string_and_number_is_read_back(text in "(\\PC|[\u{0}-\u{9f}\\\\\"]){0,40}", number in any::<u64>()) {
            let mut out = Vec::new();
            write_string(&mut out, &text);
            prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
            let mut out = Vec::new();
            write_number(&mut out, number);
            prop_assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
        }
    }
}
