//! Durations as people write them: a number and its unit.

use std::time::Duration;

/// Parses `500ms`, `30s`, `2m`, `1h` or `7d`.
pub fn parse(text: &str) -> Option<Duration> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit())?;
    let (digits, unit) = text.split_at(unit_at);
    let amount: u64 = digits.parse().ok()?;
    let unit_ms: u64 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    amount.checked_mul(unit_ms).map(Duration::from_millis)
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
