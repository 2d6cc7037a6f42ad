//! Durations as people write them: numbers with their units.

use std::time::Duration;

/// The units, largest first, in milliseconds.
const UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Digits after a decimal point; a unit has at most eight that make whole milliseconds.
const FRACTION_DIGITS_MAX: usize = 8;

/// Parses `500ms`, `30s`, `1.5s`, `2m`, `1h30m` or `7d`: larger units come first, each once. A
/// fraction must be a whole number of milliseconds.
pub fn parse(text: &str) -> Option<Duration> {
    let (mut rest, mut units, mut total_ms) = (text, &UNITS[..], 0_u64);
    while !rest.is_empty() {
        let unit_at = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (amount, after) = rest.split_at(unit_at);
        let unit_end = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        let index = units.iter().position(|(name, _)| *name == unit)?;
        total_ms = total_ms.checked_add(milliseconds(amount, units[index].1)?)?;
        (rest, units) = (after, &units[index + 1..]);
    }
    (!text.is_empty()).then(|| Duration::from_millis(total_ms))
}

fn milliseconds(amount: &str, unit_ms: u64) -> Option<u64> {
    let (whole, fraction) = amount.split_once('.').unwrap_or((amount, "0"));
    let is_number = |digits: &str| !digits.is_empty() && !digits.contains('.');
    if !is_number(whole) || !is_number(fraction) || fraction.len() > FRACTION_DIGITS_MAX {
        return None;
    }
    let whole_ms = whole.parse::<u64>().ok()?.checked_mul(unit_ms)?;
    let scale = 10_u64.pow(u32::try_from(fraction.len()).ok()?);
    let fraction_ms = fraction.parse::<u64>().ok()? * unit_ms;
    fraction_ms.is_multiple_of(scale).then(|| whole_ms.checked_add(fraction_ms / scale))?
}

/// Formats a duration in the largest unit, up to hours, that divides it.
pub fn spell(duration: Duration) -> String {
    let ms = duration.as_millis();
    let units = [(3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    match units.iter().find(|(unit_ms, _)| ms > 0 && ms.is_multiple_of(*unit_ms)) {
        Some((unit_ms, unit)) => format!("{}{unit}", ms / unit_ms),
        None if ms == 0 => "0s".to_owned(),
        None => format!("{ms}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_numbers_with_units() {
        for (text, ms) in [
            ("500ms", 500),
            ("30s", 30_000),
            ("2m", 120_000),
            ("1h", 3_600_000),
            ("7d", 604_800_000),
            ("1.5s", 1_500),
            ("0.5s", 500),
            ("1.25m", 75_000),
            ("1h30m", 5_400_000),
            ("1m30.5s", 90_500),
            ("1d2h3m4s5ms", 93_784_005),
            ("0s", 0),
        ] {
            assert_eq!(parse(text), Some(Duration::from_millis(ms)), "{text}");
        }
        for text in [
            "",
            "s",
            "5",
            "1.5",
            ".5s",
            "1.s",
            "1..5s",
            "1.2.3s",
            "-1s",
            "1 s",
            "1h 30m",
            "1S",
            "1sec",
            "30m1h",
            "1s1s",
            "1s500",
            "0.0001s",
            "1.5ms",
            "99999999999999999999s",
            "999999999999999999d",
            "1.000000000s",
            "1h30",
            "٣s",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
