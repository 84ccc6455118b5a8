//! Values that fit none of several alternatives.

use jsonschema::{
    JsonType, ValidationError,
    error::{TypeKind, ValidationErrorKind as Kind},
};
use serde_json::Value;

use super::{Explainer, hint, put, show::found, types};

/// Alternatives that are told.
const MAX_ALTERNATIVES: usize = 4;

impl Explainer<'_> {
    /// Says what each of the alternatives asks for. Where all of them are of another type, the types are enough; where
    /// some are, the others are worth telling.
    pub(super) fn alternatives(
        &self,
        error: &ValidationError<'_>,
        place: &str,
        context: &[Vec<ValidationError<'static>>],
    ) -> String {
        let value = self.value(error);
        let found = found(value);
        let here = error.instance_path();
        let of_type = |errors: &&Vec<ValidationError<'static>>| {
            errors.iter().any(|inner| {
                inner.instance_path() == here && matches!(inner.kind(), Kind::Type { .. })
            })
        };
        let others: Vec<_> = context.iter().filter(|errors| !of_type(errors)).collect();
        if others.is_empty() {
            let due: Vec<&TypeKind> = context.iter().flatten().filter_map(type_due).collect();
            let mut words: Vec<String> = due.iter().map(|kind| types(kind)).collect();
            words.dedup();
            let hint = hint_for(&due, value);
            return format!(
                "{place}: found {found}, expected {}{hint}",
                words.join(" or ")
            );
        }
        let others = meant(others);
        if let [only] = others.as_slice()
            && let Some(first) = only.first()
        {
            return self.one(first);
        }
        let mut out = format!("{place}: found {found}, which fits none of the alternatives: ");
        for (at, errors) in others.iter().take(MAX_ALTERNATIVES).enumerate() {
            let or = if at > 0 { ", or " } else { "" };
            // Which alternative it is, where that is what is wrong, says more than what is wrong in it.
            let telling = errors.iter().find(|error| names_another(error));
            match telling.or_else(|| errors.first()) {
                Some(one) => put(&mut out, format_args!("{or}[{}]", self.one(one))),
                None => put(&mut out, format_args!("{or}[it cannot be told]")),
            }
        }
        if others.len() > MAX_ALTERNATIVES {
            let more = others.len() - MAX_ALTERNATIVES;
            put(&mut out, format_args!(", or {more} more"));
        }
        out
    }
}

/// The alternatives of which no member names another one, as `"kind": {"const": "circle"}` does; all, where each does.
fn meant<'e>(
    others: Vec<&'e Vec<ValidationError<'static>>>,
) -> Vec<&'e Vec<ValidationError<'static>>> {
    let open = others
        .iter()
        .filter(|errors| !errors.iter().any(names_another));
    let open: Vec<_> = open.copied().collect();
    if open.is_empty() { others } else { open }
}

fn names_another(error: &ValidationError<'static>) -> bool {
    matches!(error.kind(), Kind::Constant { .. } | Kind::Enum { .. })
}

fn type_due<'e>(error: &'e ValidationError<'static>) -> Option<&'e TypeKind> {
    match error.kind() {
        Kind::Type { kind } => Some(kind),
        _ => None,
    }
}

fn hint_for(due: &[&TypeKind], value: Option<&Value>) -> &'static str {
    let Some(Value::String(text)) = value else {
        return "";
    };
    let due: Vec<JsonType> = due
        .iter()
        .flat_map(|kind| match kind {
            TypeKind::Single(one) => vec![*one],
            TypeKind::Multiple(several) => several.iter().collect(),
        })
        .collect();
    hint::of_string(text, &due)
}
