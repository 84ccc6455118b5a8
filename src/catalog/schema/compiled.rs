//! One schema, compiled.

use std::panic::{AssertUnwindSafe, catch_unwind};

use jsonschema::{
    PatternOptions, ReferencingError, ValidationError, Validator, error::ValidationErrorKind,
};
use serde_json::Value;

use super::{
    MAX_BYTES, Unusable,
    explain::{self, shown},
    metered::{self, Allowance, Metered, Prices, Stopped},
    shape::{self, Shape},
    sizes::longest_path,
};

/// Steps that a check may take on the runtime.
const LITTLE: u32 = 20_000;
/// Steps that a check may take at all.
const MUCH: u32 = 5_000_000;
/// Steps that it may take to say what is wrong, beside one for each byte of the arguments; errors take memory.
const TELLING: u32 = 200_000;
/// Steps that it may take to say what is wrong at all.
const MUCH_TELLING: u32 = 1_000_000;
/// How often an engine may go back in one string.
const BACKTRACKS: usize = 10_000;
/// What a subschema takes once it is compiled, in bytes and roughly.
const SUBSCHEMA_BYTES: usize = 1024;
/// The same for a pattern.
const PATTERN_WEIGHT: usize = 8 * 1024;
/// What a state of a pattern takes beside, in bytes and roughly: little for a letter, much for a class of Unicode.
const STATE_BYTES: usize = 512;
/// Memory for the compiled patterns of one schema, in bytes.
const PATTERN_BYTES: usize = 16 << 20;
/// Memory for one compiled pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 2 << 20;

/// Characters of a compiler's words that a refusal repeats.
const SHOWN: usize = 200;

/// How much a check may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effort {
    /// As much as does not hold up other calls.
    Little,
    /// As much as one call is worth.
    Much,
}

/// What a check found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The arguments fit.
    Fits,
    /// They do not; what is wrong, for the model.
    Unfit(String),
    /// It was given up.
    Stopped(Stopped),
}

/// A schema that arguments can be checked against.
#[derive(Debug)]
pub(super) struct Compiled {
    text: Box<str>,
    validator: Validator<Metered>,
    prices: Prices,
    repeated: usize,
    weight: u32,
}

impl Compiled {
    /// Compiles a schema, JSON text.
    pub(super) fn of(text: &str) -> Result<Self, Unusable> {
        if text.len() > MAX_BYTES {
            return Err(Unusable::TooLong);
        }
        let mut schema: Value =
            serde_json::from_str(text).map_err(|error| Unusable::Unreadable(error.to_string()))?;
        let keywords = schema.as_object_mut().ok_or(Unusable::NotAnObject)?;
        let dialect = shape::dialect(keywords)?;
        // Some write it otherwise than the compiler knows it.
        keywords.remove("$schema");
        let Shape {
            subschemas,
            patterns,
            states,
            prices,
            copies,
            repeated,
        } = shape::examine(&schema)?;
        let states = usize::try_from(states).unwrap_or(usize::MAX);
        let patterns_weight =
            PATTERN_WEIGHT * patterns + STATE_BYTES.saturating_mul(states).min(PATTERN_BYTES);
        let weight = 2 * text.len() + copies + SUBSCHEMA_BYTES * subschemas + patterns_weight;
        let pattern_bytes = (PATTERN_BYTES / patterns.max(1)).min(MAX_PATTERN_BYTES);
        let options = jsonschema::options_for::<Metered>()
            .with_draft(dialect)
            .offline()
            .should_validate_formats(false)
            .without_content_encoding_support("base64")
            .without_content_media_type_support("application/json")
            .with_pattern_options(
                PatternOptions::fancy_regex()
                    .backtrack_limit(BACKTRACKS)
                    .size_limit(pattern_bytes)
                    .dfa_size_limit(pattern_bytes),
            );
        let built = catch_unwind(AssertUnwindSafe(|| options.build(&schema)));
        let validator = built
            .map_err(|_| Unusable::Panic)?
            .map_err(|error| invalid(&error))?;
        Ok(Self {
            text: text.into(),
            validator,
            prices,
            repeated,
            weight: u32::try_from(weight).unwrap_or(u32::MAX),
        })
    }

    /// The memory that it takes, in bytes and roughly.
    pub(super) fn weight(&self) -> u32 {
        self.weight
    }

    /// Checks arguments, JSON text that was scanned strictly.
    pub(super) fn check(&self, arguments: &str, effort: Effort) -> Verdict {
        let values: Value = match serde_json::from_str(arguments) {
            Ok(values) => values,
            Err(error) => return Verdict::Unfit(format!("they cannot be read: {error}")),
        };
        let allowance = Allowance {
            steps: match effort {
                Effort::Little => LITTLE,
                Effort::Much => MUCH,
            },
            prices: self.prices,
            bytes: arguments.len(),
            repeated: 0,
        };
        match metered::run(&values, allowance, |look| self.validator.is_valid(look)) {
            Ok(true) => Verdict::Fits,
            Ok(false) => self.explain(&values, allowance, effort),
            Err(stopped) => Verdict::Stopped(stopped),
        }
    }

    /// Says what is wrong with arguments that do not fit.
    fn explain(&self, values: &Value, mut allowance: Allowance, effort: Effort) -> Verdict {
        let bytes = u32::try_from(allowance.bytes).unwrap_or(u32::MAX);
        let telling = TELLING.saturating_add(bytes).min(MUCH_TELLING);
        allowance.steps = allowance.steps.min(telling);
        allowance.repeated = self.repeated + longest_path(values);
        let all = metered::run(values, allowance, |look| {
            let errors: Vec<ValidationError<'_>> = self.validator.iter_errors(look).collect();
            explain::text(&errors, values, &self.schema())
        });
        // Where all that is wrong is too much, one of it is better than nothing.
        let explained = all.or_else(|stopped| match effort {
            Effort::Little => Err(stopped),
            Effort::Much => metered::run(values, allowance, |look| {
                let first = self.validator.validate(look).err();
                explain::text(first.as_slice(), values, &self.schema())
            }),
        });
        match (explained, effort) {
            (Ok(why), _) => Verdict::Unfit(why),
            (Err(stopped), Effort::Little) => Verdict::Stopped(stopped),
            (Err(_), Effort::Much) => {
                Verdict::Unfit("what is wrong takes too long to find out".to_owned())
            }
        }
    }

    /// Read again: only what is refused needs it.
    fn schema(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }
}

/// What a compiler's error says of the schema; never the whole of it.
fn invalid(error: &ValidationError<'_>) -> Unusable {
    match error.kind() {
        ValidationErrorKind::Referencing(ReferencingError::Unretrievable { uri, .. }) => {
            Unusable::Reference(shown(uri, SHOWN))
        }
        ValidationErrorKind::Referencing(error) => {
            Unusable::Invalid(shown(&error.to_string(), SHOWN))
        }
        _ => {
            let path = shown(error.instance_path().as_str(), SHOWN);
            let what = shown(&error.masked().to_string(), SHOWN);
            Unusable::Invalid(format!("`{path}`: {what}"))
        }
    }
}
