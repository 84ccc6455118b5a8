//! Mirrored arguments, held against the headers of a call.

use http::{HeaderMap, HeaderValue};

use super::{MAX_MIRRORS, Mirror, Mirrors};
use crate::{
    mcp::{
        headers,
        scan::{Part, Rules, ScanError, Scanner},
    },
    refusal::{Code, Refusal},
};

/// What JavaScript can hold exactly; mirrored integers are within it.
const MAX_INTEGER: i64 = (1 << 53) - 1;

impl Mirrors {
    /// Holds the headers of a call against its arguments, which were scanned by [`Rules::Strict`]. The refusal names
    /// the header, and neither value.
    ///
    /// # Errors
    /// [`Code::HeaderMismatch`] where a header is missing, stands there without a value in the arguments, cannot be
    /// decoded, or says something else.
    pub fn check(&self, arguments: Option<Part<'_>>, headers: &HeaderMap) -> Result<(), Refusal> {
        let mut values = [None; MAX_MIRRORS];
        if let Some(arguments) = arguments.filter(Part::is_object) {
            find(arguments, &self.0, 0, &mut values)
                .map_err(|error| Refusal::new(error.code(), error.to_string()))?;
        }
        for (mirror, value) in self.0.iter().zip(values) {
            let value = value.filter(|value| value.as_str() != "null");
            agree(headers.get(&mirror.header), value).map_err(|how| {
                let header = &mirror.header;
                Refusal::new(Code::HeaderMismatch, format!("header `{header}` {how}"))
            })?;
        }
        Ok(())
    }
}

/// Finds the values of `mirrors`, whose paths all begin with the `depth` names that led to `object`.
fn find<'a>(
    object: Part<'a>,
    mirrors: &[Mirror],
    depth: usize,
    values: &mut [Option<Part<'a>>],
) -> Result<(), ScanError> {
    let mut scanner = Scanner::new(object.as_str().as_bytes(), Rules::Loose)?;
    scanner.enter_object()?;
    while let Some(key) = scanner.key()? {
        let value = scanner.value()?;
        let mut from = mirrors.partition_point(|mirror| *mirror.path[depth] < *key);
        let to = from + mirrors[from..].partition_point(|mirror| *mirror.path[depth] == *key);
        // The path that ends here comes before those that go on.
        if from < to && mirrors[from].path.len() == depth + 1 {
            values[from] = Some(value);
            from += 1;
        }
        if from < to && value.is_object() {
            find(value, &mirrors[from..to], depth + 1, &mut values[from..to])?;
        }
    }
    Ok(())
}

fn agree(header: Option<&HeaderValue>, value: Option<Part<'_>>) -> Result<(), &'static str> {
    let (header, value) = match (header, value) {
        (None, None) => return Ok(()),
        (None, Some(_)) => return Err("is missing, and the arguments have its value"),
        (Some(_), None) => return Err("has a value, and the arguments have none for it"),
        (Some(header), Some(value)) => (header, value),
    };
    let text = header
        .to_str()
        .ok()
        .map(|text| text.trim_matches([' ', '\t']));
    match text.and_then(headers::decode) {
        None => Err("is not visible ASCII, or not valid base64 of UTF-8"),
        Some(text) if equal(&text, value) => Ok(()),
        Some(_) => Err("does not say what the arguments say"),
    }
}

/// By the type that the value has: whether it is the one that the schema wants is the server's to say.
fn equal(header: &str, value: Part<'_>) -> bool {
    let text = value.as_str();
    match text.as_bytes().first() {
        Some(b'"') => value.string().is_some_and(|value| value == header),
        Some(b't' | b'f') => text == header,
        Some(b'-' | b'0'..=b'9') => integer(text).is_some_and(|own| integer(header) == Some(own)),
        // Objects and arrays have no form in a header.
        _ => false,
    }
}

/// The integer that a JSON number stands for, however it is written: `42`, `42.0` and `4.2e1` are one.
fn integer(text: &str) -> Option<i64> {
    let (digits, exponent) = match text.split_once(['e', 'E']) {
        Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let unsigned = digits.strip_prefix('-').unwrap_or(digits);
    let (whole, fraction) = match unsigned.split_once('.') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (unsigned, ""),
    };
    if whole.is_empty() || (whole.len() > 1 && whole.starts_with('0')) {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    let mut number: i64 = 0;
    for digit in whole.chars().chain(fraction.chars()) {
        let digit = digit.to_digit(10)?;
        number = number.checked_mul(10)?.checked_add(digit.into())?;
    }
    let shift = i64::from(exponent) - i64::try_from(fraction.len()).ok()?;
    let number = shifted(number, shift).filter(|number| *number <= MAX_INTEGER)?;
    Some(if digits.starts_with('-') {
        -number
    } else {
        number
    })
}

/// `number` times ten to the power of `shift`, if that is an integer.
fn shifted(mut number: i64, shift: i64) -> Option<i64> {
    // Ends at the nineteenth digit at the latest.
    for _ in 0..shift.unsigned_abs() {
        number = match number {
            0 => return Some(0),
            _ if shift > 0 => number.checked_mul(10)?,
            _ if number % 10 == 0 => number / 10,
            _ => return None,
        };
    }
    Some(number)
}

#[cfg(test)]
mod tests;
