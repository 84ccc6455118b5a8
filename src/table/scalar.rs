//! Single values: durations, and the nearest of some words.

use std::time::Duration;

/// Reads `250ms`, `5s`, `1m` or `1h`.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    match unit {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" => number.checked_mul(60).map(Duration::from_secs),
        "h" => number.checked_mul(3600).map(Duration::from_secs),
        _ => None,
    }
}

/// Writes a duration in the form that [`duration`] reads.
pub(super) fn written(duration: Duration) -> String {
    let (seconds, millis) = (duration.as_secs(), duration.as_millis());
    match seconds {
        _ if duration.subsec_millis() != 0 => format!("{millis}ms"),
        0 => "0s".to_owned(),
        _ if seconds % 3600 == 0 => format!("{}h", seconds / 3600),
        _ if seconds % 60 == 0 => format!("{}m", seconds / 60),
        _ => format!("{seconds}s"),
    }
}

/// The one of `words` that was probably meant by `text`.
pub(super) fn nearest<'w>(text: &str, words: &[&'w str]) -> Option<&'w str> {
    let allowed = text.chars().count().div_ceil(3).min(3);
    words
        .iter()
        .map(|word| (distance(text, word), *word))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, word)| word)
}

/// Insertions, deletions and substitutions between two texts (Levenshtein), one row of the matrix at a time.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(64).enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// What stands behind `expected` in a message: the one word, or all of several.
pub(super) fn one_of(words: &[&str]) -> String {
    let listed = listed(words.iter().copied());
    match words {
        [_] => listed,
        _ => format!("one of {listed}"),
    }
}

/// Words in backticks, for a message.
pub(super) fn listed<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    let quoted: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    quoted.join(", ")
}
