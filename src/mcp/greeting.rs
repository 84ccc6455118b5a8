//! What a server says of itself to a model, in its answers to `initialize` and `server/discover`.

use super::scan::{Rules, ScanError, Scanner, lookalike};

/// What decides how a client sees a server.
const MEMBERS: [&str; 4] = [
    "instructions",
    "capabilities",
    "protocolVersion",
    "supportedVersions",
];

/// Why it is not known what readers take a greeting for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unclear {
    /// It is no object.
    #[error("{0}")]
    Json(ScanError),
    /// A member stands twice, or beside one that some readers take for it.
    #[error("`{0}` stands twice, or beside a member that looks like it")]
    Member(&'static str),
}

impl From<ScanError> for Unclear {
    fn from(error: ScanError) -> Self {
        Self::Json(error)
    }
}

/// The JSON text of the instructions in `result`, a part of it; `None` where there are none.
///
/// # Errors
///
/// Readers could disagree about what the result says.
pub fn instructions(result: &str) -> Result<Option<&str>, Unclear> {
    let mut scanner = Scanner::new(result.as_bytes(), Rules::Loose)?;
    let mut found: [Option<&str>; MEMBERS.len()] = [None; MEMBERS.len()];
    scanner.enter_object()?;
    while let Some(key) = scanner.key()? {
        let value = scanner.value()?;
        let Some(member) = lookalike(&key, &MEMBERS) else {
            continue;
        };
        let place = MEMBERS.iter().zip(&mut found);
        for (_, place) in place.filter(|(name, _)| **name == member) {
            if key != member || place.replace(value.as_str()).is_some() {
                return Err(Unclear::Member(member));
            }
        }
    }
    Ok(found[0].filter(|text| *text != "null"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_found_and_nothing_passes_for_them() {
        for (result, found) in [
            (
                r#"{"serverInfo":{},"instructions" : "be brief"}"#,
                Ok(Some(r#""be brief""#)),
            ),
            (r#"{"\u0069nstructions":"x"}"#, Ok(Some(r#""x""#))),
            (r#"{"instructions":null,"Info":1}"#, Ok(None)),
            ("{}", Ok(None)),
            (
                r#"{"instructions":"a","instructions":"b"}"#,
                Err(Unclear::Member("instructions")),
            ),
            (
                r#"{"instructions":"a","Instructions":"b"}"#,
                Err(Unclear::Member("instructions")),
            ),
            (
                r#"{"in\u017ftructions":"b"}"#,
                Err(Unclear::Member("instructions")),
            ),
            (
                r#"{"capabilities":{},"CAPABILITIES":{}}"#,
                Err(Unclear::Member("capabilities")),
            ),
        ] {
            assert_eq!(instructions(result), found, "{result}");
        }
        assert!(matches!(instructions("7"), Err(Unclear::Json(_))));
    }
}
