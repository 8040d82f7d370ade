//! An amount of money as people type it.

/// More than anybody means; a missing point is more likely.
const USD_MAX: f64 = 100_000.0;

/// `5`, `2.50`, `$5`; `off` and `0` are no limit.
pub(crate) fn parse_limit(text: &str) -> Result<f64, String> {
    let text = text.trim();
    if ["off", "none"].contains(&text) {
        return Ok(0.0);
    }
    let number = text.strip_prefix('$').unwrap_or(text).trim();
    let is_plain = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || c == '.');
    let usd = number.parse::<f64>().ok().filter(|_| is_plain);
    match usd.filter(|usd| *usd <= USD_MAX) {
        Some(usd) => Ok(usd),
        None => Err(format!(
            "a budget is an amount of dollars such as 2.50, at most {USD_MAX}, or `off`"
        )),
    }
}

/// An amount for people to read.
pub(crate) fn format_limit(usd: f64) -> String {
    if usd < 0.01 && usd > 0.0 { format!("${usd}") } else { format!("${usd:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_plain_numbers() {
        for (text, usd) in [("5", 5.0), (" $2.50 ", 2.5), ("off", 0.0), ("0", 0.0), (".5", 0.5)] {
            assert_eq!(parse_limit(text), Ok(usd), "{text}");
        }
        for text in ["", "$", "-1", "1e9", "inf", "NaN", "5 dollars", "1,5", "100001", "1.2.3"] {
            let why = parse_limit(text).unwrap_err();
            assert!(why.contains("2.50"), "{text}: {why}");
        }
        assert_eq!(format_limit(2.5), "$2.50");
        assert_eq!(format_limit(0.001), "$0.001");
    }
}
