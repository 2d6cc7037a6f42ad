//! Times as the ledger writes them: text in receipts, microseconds in columns.

use jiff::Timestamp;
use jiff::tz::Offset;

use crate::error::StoreError;

/// Returns the present time as receipts write it.
pub(crate) fn now() -> String {
    text(Timestamp::now())
}

/// Formats a time as RFC 3339 with milliseconds. Each receipt has several, and jiff's own formatting
/// costs ten times as much.
pub(crate) fn text(at: Timestamp) -> String {
    let civil = Offset::UTC.to_datetime(at);
    let Ok(year) = u16::try_from(civil.year()) else {
        return format!("{at:.3}");
    };
    let mut text = *b"0000-00-00T00:00:00.000Z";
    let parts = [civil.month(), civil.day(), civil.hour(), civil.minute(), civil.second()];
    write_digits(&mut text[..4], year);
    for (part, place) in parts.into_iter().zip(text[5..19].chunks_mut(3)) {
        write_digits(&mut place[..2], part.unsigned_abs().into());
    }
    write_digits(&mut text[20..23], civil.millisecond().unsigned_abs());
    str::from_utf8(&text).expect("digits and punctuation are UTF-8").to_owned()
}

/// Writes the last digits of a number into a place that is as wide as they are many.
fn write_digits(place: &mut [u8], mut number: u16) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// Reads a time from a column.
pub(crate) fn read(microseconds: i64) -> Result<Timestamp, StoreError> {
    Timestamp::from_microsecond(microseconds)
        .map_err(|_| StoreError::Corrupt(format!("{microseconds} is not a valid time")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_as_jiff_writes_it() {
        let day = 86_400_000_000_i64;
        let days = (-800_000..3_000_000).step_by(997).map(|number| number * day / 10);
        let odd = [0, 1, 999, 1000, 999_999, -1, -999, -1000, day - 1, 951_782_399_999_999];
        let times = days.map(|at| at + 12_345_678).chain(odd).map(|at| read(at).unwrap());
        for at in times.chain([Timestamp::MIN, Timestamp::MAX]) {
            assert_eq!(text(at), format!("{at:.3}"));
        }
    }
}
