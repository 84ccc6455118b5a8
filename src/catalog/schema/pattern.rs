//! What it takes to match a string against a pattern at worst, read from the pattern's text.
//!
//! A linear engine follows all states of a pattern at once, and counted repetitions multiply them: `[ab]*a[ab]{800}c` has
//! hundreds of them to follow at each byte. One that looks around or back may begin such a search at each byte again.

/// Engines for patterns follow so many states at one byte in a step.
const STATES: u64 = 32;
/// An engine that backtracks searches so many bytes in a step.
const SEARCHED: u64 = 64;
/// What a look at a string takes where patterns are matched by an engine that backtracks.
const BACKTRACKING: u64 = 1000;

/// What patterns cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cost {
    /// States that may have to be followed at each byte.
    pub(super) states: u64,
    /// Whether they need an engine that backtracks.
    pub(super) backtracks: bool,
    /// Whether that engine may search the rest of a string from each of its bytes.
    pub(super) again: bool,
}

impl Cost {
    /// The cost of one pattern.
    pub(super) fn of(pattern: &str) -> Self {
        let backtracks = backtracks(pattern);
        Self {
            states: states(pattern),
            backtracks,
            again: backtracks && !looks_ahead_once(pattern),
        }
    }

    /// The steps that matching a string of so many bytes takes.
    pub(super) fn steps(self, bytes: usize) -> usize {
        let bytes = bytes as u64;
        let once = bytes.saturating_mul(self.states);
        let mut steps = once / STATES;
        if self.backtracks {
            steps = steps.saturating_add(BACKTRACKING);
        }
        if self.again {
            steps = steps.saturating_add(once.saturating_mul(bytes) / SEARCHED);
        }
        usize::try_from(steps.min(u64::from(u32::MAX))).unwrap_or(usize::MAX)
    }

    /// The cost of whichever of two is matched.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            states: self.states.max(other.states),
            backtracks: self.backtracks || other.backtracks,
            again: self.again || other.again,
        }
    }

    /// The cost of two that are both matched.
    pub(super) fn and(self, other: Self) -> Self {
        let states = self.states.saturating_add(other.states);
        Self {
            states,
            ..self.or(other)
        }
    }
}

/// Whether a pattern looks around or back, roughly: what a linear engine cannot do.
fn backtracks(pattern: &str) -> bool {
    let around = ["(?=", "(?!", "(?<", "\\k"];
    let mut bytes = pattern.as_bytes().windows(2);
    around.iter().any(|piece| pattern.contains(piece))
        || bytes.any(|pair| pair[0] == b'\\' && matches!(pair[1], b'1'..=b'9'))
}

/// Whether a pattern does no more than look ahead at the beginning of the string, as `^(?!.*\.\.)[a-z.]+$` does: then each
/// of its pieces is searched once.
fn looks_ahead_once(pattern: &str) -> bool {
    let Some(mut rest) = pattern.strip_prefix('^') else {
        return false;
    };
    while rest.starts_with("(?=") || rest.starts_with("(?!") {
        let Some(end) = group_end(rest) else {
            return false;
        };
        if backtracks(&rest[3..end]) {
            return false;
        }
        rest = &rest[end + 1..];
    }
    let repeated = rest.starts_with(['*', '+', '?', '{']);
    !repeated && !rest.contains('|') && !backtracks(rest)
}

/// Where the group ends that a pattern begins with.
fn group_end(pattern: &str) -> Option<usize> {
    let bytes = pattern.as_bytes();
    let (mut at, mut depth) = (0, 0_usize);
    while at < bytes.len() {
        match bytes[at] {
            b'(' => depth += 1,
            b')' if depth == 1 => return Some(at),
            b')' => depth -= 1,
            _ => {}
        }
        at = after_atom(bytes, at);
    }
    None
}

/// The states of a pattern once its counted repetitions are written out, roughly.
fn states(pattern: &str) -> u64 {
    if spaced(pattern) {
        return u64::MAX;
    }
    let bytes = pattern.as_bytes();
    let mut outer = Vec::new();
    let (mut total, mut atom) = (1_u64, 0_u64);
    let mut at = 0;
    while at < bytes.len() {
        let next = after_atom(bytes, at);
        match bytes[at] {
            b'(' => {
                outer.push(total);
                (total, atom) = (1, 0);
            }
            b')' => {
                atom = total;
                total = outer.pop().unwrap_or(1).saturating_add(atom);
            }
            b'{' if let Some((times, end)) = repetition(pattern, at) => {
                total = total.saturating_add(atom.saturating_mul(times - 1));
                atom = atom.saturating_mul(times);
                at = end;
                continue;
            }
            b'*' | b'+' | b'?' | b'^' | b'$' => {}
            _ => {
                atom = 1;
                total = total.saturating_add(1);
            }
        }
        at = next;
    }
    total
}

/// Whether spaces and comments in a pattern mean nothing, as `(?x)` has it, which JSON Schema does not know: what it repeats
/// cannot be told then.
fn spaced(pattern: &str) -> bool {
    pattern.match_indices("(?").any(|(at, _)| {
        let rest = &pattern[at + 2..];
        let end = rest.find(|c: char| !c.is_ascii_alphabetic() && c != '-');
        let (flags, after) = rest.split_at(end.unwrap_or(rest.len()));
        flags.contains('x') && after.starts_with([':', ')'])
    })
}

/// Past one escape, class or character.
fn after_atom(bytes: &[u8], at: usize) -> usize {
    match bytes[at] {
        b'\\' => at + 2,
        b'[' => {
            let mut end = at + 1;
            while end < bytes.len() && bytes[end] != b']' {
                end += if bytes[end] == b'\\' { 2 } else { 1 };
            }
            end + 1
        }
        _ => at + 1,
    }
}

/// How often the repetition at `at` repeats at most, at least once, and where it ends.
fn repetition(pattern: &str, at: usize) -> Option<(u64, usize)> {
    let length = pattern[at..].find('}')?;
    let inner = &pattern[at + 1..at + length];
    let (least, most) = inner.split_once(',').unwrap_or((inner, ""));
    let number = |text: &str| match text.trim() {
        "" => Some(0),
        digits => digits.parse::<u64>().ok(),
    };
    let times = number(least)?.max(number(most)?).max(1);
    Some((times, at + length + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_multiply_states() {
        for (pattern, expected) in [
            ("", 1),
            ("abc", 4),
            ("^a*$", 2),
            ("[a-z]{3}", 4),
            ("[^\\]{9}]{2,5}x", 7),
            ("(ab){10}", 31),
            ("((a{10}){10}){10}", 1111),
            ("a{2}{3}", 7),
            ("a{,4}b{5,}", 10),
            ("a\\{100}", 7),
            ("\\p{L}{8}", 12),
            ("a{18446744073709551615}{2}", u64::MAX),
            ("a{x}", 5),
            ("(?i-x:a)", u64::MAX),
            ("(?:x)(?<x>x)", 9),
        ] {
            assert_eq!(states(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn what_begins_again_at_each_byte() {
        for (pattern, backtracks, again) in [
            ("^[a-z]+$", false, false),
            ("^(?!admin)[a-z]+$", true, false),
            ("^(?=.*[A-Z])(?=.*[)(0-9]).{8,}$", true, false),
            ("(?=a)a", true, true),
            ("^(?!a)b|c", true, true),
            ("^(?=a)*b", true, true),
            ("^(?!(?=a)b)c", true, true),
            ("^(?:[ab](?=[ab]*c))*$", true, true),
            ("^(a|b)\\1$", true, true),
            ("^(?!a", true, true),
        ] {
            let cost = Cost::of(pattern);
            assert_eq!(
                (cost.backtracks, cost.again),
                (backtracks, again),
                "{pattern}"
            );
        }
    }
}
