//! Durations as people write them: `500ms`, `5s`, `1m`, `2h`, `1m30s`, `1.5s`.

use std::time::Duration;

/// What a duration may look like, for messages.
pub const ALLOWED: &str = "a duration such as 500ms, 5s or 1m30s (units: ms, s, m, h)";

/// Durations are whole milliseconds, so that what [`format`] shows is what is in effect.
const NANOS_PER_MILLI: u32 = 1_000_000;

/// Reads a duration. A number without a unit is refused: seconds and milliseconds are too easily confused.
///
/// # Errors
/// Says what is wrong, when the text is not a duration.
pub fn parse(text: &str) -> Result<Duration, String> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(format!("expected {ALLOWED}"));
    }
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, next) = after.split_at(letters);
        let seconds_per_unit = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "" => return Err(format!("`{text}` has no unit: expected {ALLOWED}")),
            _ => return Err(format!("`{text}` is not a duration: expected {ALLOWED}")),
        };
        let part = number
            .parse::<f64>()
            .ok()
            .and_then(|value| Duration::try_from_secs_f64(value * seconds_per_unit).ok())
            .and_then(|part| total.checked_add(part));
        match part {
            Some(sum) => total = sum,
            None => return Err(format!("`{text}` is not a duration: expected {ALLOWED}")),
        }
        rest = next;
    }
    if !total.subsec_nanos().is_multiple_of(NANOS_PER_MILLI) {
        return Err(format!("`{text}` is finer than a millisecond: expected {ALLOWED}"));
    }
    Ok(total)
}

/// Writes a duration so that [`parse`] reads it back, in the largest unit that divides it.
#[must_use]
pub fn format(duration: Duration) -> String {
    let millis = duration.as_millis();
    match millis {
        0 => "0s".to_owned(),
        _ if millis.is_multiple_of(3_600_000) => format!("{}h", millis / 3_600_000),
        _ if millis.is_multiple_of(60_000) => format!("{}m", millis / 60_000),
        _ if millis.is_multiple_of(1_000) => format!("{}s", millis / 1_000),
        _ => format!("{millis}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write_is_read() {
        let cases = [
            ("500ms", 500),
            ("5s", 5_000),
            ("1m", 60_000),
            ("1m30s", 90_000),
            ("1.5s", 1_500),
            ("2h", 7_200_000),
            ("0s", 0),
        ];
        for (text, millis) in cases {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused_with_the_form_that_is() {
        for text in ["", "5", "s", "-5s", "5 s", "5d", "1..5s", "0.1ms", "99999999999999999999h"] {
            let message = parse(text).unwrap_err();
            assert!(message.contains("500ms"), "{text}: {message}");
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        for millis in [0, 1, 500, 1_500, 5_000, 60_000, 90_000, 300_000, 3_600_000] {
            let duration = Duration::from_millis(millis);
            assert_eq!(parse(&format(duration)), Ok(duration));
        }
    }
}
