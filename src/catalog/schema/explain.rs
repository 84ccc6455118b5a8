//! What is wrong with arguments, in words that a model can act on: where, what was found, what is expected.
//!
//! The words are bounded, and of the arguments they repeat no more than the beginning of a scalar.

mod alternatives;
mod hint;
mod show;

use std::fmt::Write;

use jsonschema::{
    JsonType, ValidationError,
    error::{TypeKind, ValidationErrorKind as Kind},
};
use serde_json::Value;

pub(super) use show::shown;
use show::{found, listed, literal, name, path};

/// Errors that are told, at most.
const MAX_ERRORS: usize = 5;
/// Bytes of all of them, at most.
const MAX_BYTES: usize = 2048 - 128;
/// Characters of a pattern that are told.
const PATTERN: usize = 100;
/// Unknown members of one object that are told.
const MAX_MEMBERS: usize = 3;

/// Explains the errors of `values`, of which there is at least one, against `schema`.
pub(super) fn text(errors: &[ValidationError<'_>], values: &Value, schema: &Value) -> String {
    let explainer = Explainer { values, schema };
    let mut out = String::new();
    let mut told = 0;
    for error in errors.iter().take(MAX_ERRORS) {
        let one = explainer.one(error);
        if told > 0 && out.len() + one.len() > MAX_BYTES {
            break;
        }
        told += 1;
        match errors.len() {
            1 => out.push_str(&one),
            _ if told == 1 => put(&mut out, format_args!("(1) {one}")),
            _ => put(&mut out, format_args!("; ({told}) {one}")),
        }
    }
    if errors.len() > told {
        put(&mut out, format_args!("; and {} more", errors.len() - told));
    }
    if out.len() > MAX_BYTES {
        out.truncate(out.floor_char_boundary(MAX_BYTES));
        out.push('…');
    }
    out
}

/// Appends to a string, which does not fail.
fn put(out: &mut String, words: std::fmt::Arguments<'_>) {
    out.write_fmt(words).expect("a string takes all");
}

struct Explainer<'a> {
    values: &'a Value,
    schema: &'a Value,
}

impl<'a> Explainer<'a> {
    /// One error: the place, what was found there, what is expected, and perhaps what to do.
    fn one(&self, error: &ValidationError<'_>) -> String {
        let place = path(error.instance_path().as_str());
        match error.kind() {
            Kind::Required { property } => {
                let property = property.as_str().unwrap_or_default();
                format!("{place}: the required member {} is missing", name(property))
            }
            Kind::AdditionalProperties { unexpected }
            | Kind::UnevaluatedProperties { unexpected } => {
                format!("{place}: {}", self.unknown(error, unexpected))
            }
            Kind::PropertyNames { error: inner } => {
                let found = inner.instance().as_str().map(name);
                let found = found.unwrap_or_else(|| "a member".to_owned());
                let expected = self.expected(inner);
                format!("{place}: found the name {found} of a member, expected {expected}")
            }
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
                self.alternatives(error, &place, context)
            }
            _ => {
                let value = self.value(error);
                let expected = self.expected(error);
                let hint = hint::of(error.kind(), value);
                format!("{place}: found {}, expected {expected}{hint}", found(value))
            }
        }
    }

    /// The value that an error is about.
    fn value(&self, error: &ValidationError<'_>) -> Option<&'a Value> {
        self.values.pointer(error.instance_path().as_str())
    }

    /// What a keyword asks for.
    fn expected(&self, error: &ValidationError<'_>) -> String {
        match error.kind() {
            Kind::Type { kind } => types(kind),
            Kind::Enum { options } => match options.as_array() {
                Some(options) => format!("one of {}", listed(options)),
                None => literal(options),
            },
            Kind::Constant { expected_value } => literal(expected_value),
            Kind::Minimum { limit } => format!("at least {}", literal(limit)),
            Kind::Maximum { limit } => format!("at most {}", literal(limit)),
            Kind::ExclusiveMinimum { limit } => format!("more than {}", literal(limit)),
            Kind::ExclusiveMaximum { limit } => format!("less than {}", literal(limit)),
            Kind::MultipleOf { multiple_of } => format!("a multiple of {multiple_of}"),
            Kind::MinLength { limit } => format!("at least {limit} characters"),
            Kind::MaxLength { limit } => format!("at most {limit} characters"),
            Kind::MinItems { limit } => format!("at least {limit} items"),
            Kind::MaxItems { limit } => format!("at most {limit} items"),
            Kind::MinProperties { limit } => format!("at least {limit} members"),
            Kind::MaxProperties { limit } => format!("at most {limit} members"),
            Kind::AdditionalItems { limit } => format!("at most {limit} items"),
            Kind::UnevaluatedItems { .. } => "no further items".to_owned(),
            Kind::UniqueItems => "items that all differ".to_owned(),
            Kind::Contains => "an item of the kind that must be in it".to_owned(),
            Kind::Pattern { pattern } => {
                format!("a string that matches `{}`", shown(pattern, PATTERN))
            }
            Kind::BacktrackLimitExceeded { .. } => {
                "a string that its pattern can be matched against within the allowed steps"
                    .to_owned()
            }
            Kind::FalseSchema => "nothing here".to_owned(),
            Kind::Not { .. } => "something that its schema does not exclude".to_owned(),
            Kind::OneOfMultipleValid { .. } => {
                "a value that fits exactly one of the alternatives, and it fits several".to_owned()
            }
            kind => format!(
                "what the keyword `{}` asks for",
                shown(kind.keyword(), PATTERN)
            ),
        }
    }

    /// Members that nothing provides for, each with the known name that it may be meant for.
    fn unknown(&self, error: &ValidationError<'_>, unexpected: &[String]) -> String {
        let parent = error.schema_path().as_str().rsplit_once('/');
        let parent = parent.and_then(|(parent, _)| self.schema.pointer(parent));
        let known = parent.and_then(|parent| parent.get("properties")?.as_object());
        let known: Vec<&str> = known
            .map(|known| known.keys().map(String::as_str).collect())
            .unwrap_or_default();
        let mut out = String::from(match unexpected.len() {
            1 => "the member ",
            _ => "the members ",
        });
        for (at, member) in unexpected.iter().take(MAX_MEMBERS).enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            put(&mut out, format_args!("{comma}{}", name(member)));
            if let Some(meant) = hint::nearest(member, &known) {
                put(&mut out, format_args!(" (did you mean {}?)", name(meant)));
            }
        }
        if unexpected.len() > MAX_MEMBERS {
            let more = unexpected.len() - MAX_MEMBERS;
            put(&mut out, format_args!(" and {more} more"));
        }
        out.push_str(match unexpected.len() {
            1 => " is not known",
            _ => " are not known",
        });
        if !known.is_empty() {
            let known: Vec<Value> = known.into_iter().map(Value::from).collect();
            put(&mut out, format_args!("; known are {}", listed(&known)));
        }
        out
    }
}

/// The names of types, for "expected".
fn types(kind: &TypeKind) -> String {
    let article = |one: JsonType| match one {
        JsonType::Null => "null".to_owned(),
        JsonType::Array | JsonType::Integer | JsonType::Object => format!("an {one}"),
        _ => format!("a {one}"),
    };
    let all: Vec<String> = match kind {
        TypeKind::Single(one) => vec![article(*one)],
        TypeKind::Multiple(several) => several.iter().map(article).collect(),
    };
    all.join(" or ")
}

#[cfg(test)]
mod tests;
