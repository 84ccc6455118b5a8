//! Capabilities: what of one side the other is told, since only that is relayed.

use super::{
    Question,
    scan::{Part, Rules, Scanner},
};

/// What a client offers to a server: of its own capabilities, those that are relayed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// The JSON text; empty for the empty object.
    text: String,
    form: bool,
    url: bool,
    sampling: bool,
    roots: bool,
}

impl Offer {
    /// Cuts a client's capabilities, a JSON object, to those whose questions are relayed. What is no object, or an
    /// unknown capability, is not offered.
    pub fn new(capabilities: Option<Part<'_>>, relayed: impl Fn(Question) -> bool) -> Self {
        let mut offer = Self::default();
        let Some(capabilities) = capabilities.filter(|part| part.is_object()) else {
            return offer;
        };
        let mut kept = Vec::new();
        let _whole = each_member(capabilities.as_str(), |key, value| {
            let question = match key {
                "elicitation" => Question::Elicit,
                "sampling" => Question::Sample,
                "roots" => Question::Roots,
                _ => return,
            };
            if relayed(question) && value.is_object() {
                offer.note(question, value);
                kept.push(format!(r#""{key}":{}"#, value.as_str()));
            }
        });
        if !kept.is_empty() {
            offer.text = format!("{{{}}}", kept.join(","));
        }
        offer
    }

    fn note(&mut self, question: Question, value: Part<'_>) {
        match question {
            Question::Sample => self.sampling = true,
            Question::Roots => self.roots = true,
            Question::Elicit => {
                let (mut modes, mut form) = (0, false);
                let _whole = each_member(value.as_str(), |mode, _| {
                    modes += 1;
                    form |= mode == "form";
                    self.url |= mode == "url";
                });
                // Without a mode, forms are meant (MCP 2025-11-25, elicitation).
                self.form = form || modes == 0;
            }
        }
    }

    /// Everything that is relayed.
    pub fn all(relayed: impl Fn(Question) -> bool) -> Self {
        let mut offer = Self::default();
        let mut kept = Vec::new();
        if relayed(Question::Elicit) {
            (offer.form, offer.url) = (true, true);
            kept.push(r#""elicitation":{"form":{},"url":{}}"#);
        }
        if relayed(Question::Sample) {
            offer.sampling = true;
            kept.push(r#""sampling":{}"#);
        }
        if relayed(Question::Roots) {
            offer.roots = true;
            kept.push(r#""roots":{}"#);
        }
        if !kept.is_empty() {
            offer.text = format!("{{{}}}", kept.join(","));
        }
        offer
    }

    /// What the server may ask: for forms, for pages, for completions, for folders.
    pub fn questions(&self) -> [bool; 4] {
        [self.form, self.url, self.sampling, self.roots]
    }

    /// The JSON text that the server is told.
    pub fn as_json(&self) -> &str {
        if self.text.is_empty() {
            "{}"
        } else {
            &self.text
        }
    }

    /// Whether the server may ask this; `url` says that it wants a page to be opened, not a form filled in.
    pub fn admits(&self, question: Question, url: bool) -> bool {
        match question {
            Question::Elicit if url => self.url,
            Question::Elicit => self.form,
            Question::Sample => self.sampling,
            Question::Roots => self.roots,
        }
    }
}

/// What clients are told of a server: the features that are relayed, as the server describes them. Others (tasks,
/// extensions, experiments) are withheld, so that nobody asks for them.
pub fn of_server(capabilities: &str) -> String {
    const RELAYED: [&str; 5] = ["tools", "resources", "prompts", "completions", "logging"];
    let mut kept = Vec::new();
    let _whole = each_member(capabilities, |key, value| {
        if RELAYED.contains(&key) && value.is_object() {
            kept.push(format!(r#""{key}":{}"#, value.as_str()));
        }
    });
    format!("{{{}}}", kept.join(","))
}

/// Shows every member of an object; `None` where it is none. The text was scanned before.
fn each_member<'a>(text: &'a str, mut show: impl FnMut(&str, Part<'a>)) -> Option<()> {
    let mut scanner = Scanner::new(text.as_bytes(), Rules::Loose).ok()?;
    scanner.enter_object().ok()?;
    while let Some(key) = scanner.key().ok()? {
        show(&key, scanner.value().ok()?);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::Envelope;

    const ALL: [Question; 3] = [Question::Elicit, Question::Sample, Question::Roots];

    fn offer(capabilities: &str, relayed: &[Question]) -> Offer {
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"capabilities":{capabilities}}}}}"#
        );
        let message = Envelope::inbound(text.as_bytes()).expect("a message");
        Offer::new(message.params.expect("params").capabilities, |question| {
            relayed.contains(&question)
        })
    }

    #[test]
    fn what_is_not_relayed_is_not_offered() {
        let all = r#"{"tasks":{},"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{"listChanged":true},"experimental":{"x":{}},"extensions":{}}"#;
        assert_eq!(
            offer(all, &ALL).as_json(),
            r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{"listChanged":true}}"#
        );
        assert_eq!(
            offer(all, &[Question::Sample]).as_json(),
            r#"{"sampling":{"tools":{}}}"#
        );
        assert_eq!(offer(all, &[]), Offer::default());
        assert_eq!(offer(all, &[]).as_json(), "{}");
        for odd in ["7", "[]", r#"{"sampling":true,"elicitation":null}"#] {
            assert_eq!(offer(odd, &ALL).as_json(), "{}", "{odd}");
        }
    }

    #[test]
    fn modes_of_elicitation_are_told_apart() {
        for (capability, form, url) in [
            ("{}", true, false),
            (r#"{"form":{}}"#, true, false),
            (r#"{"url":{}}"#, false, true),
            (r#"{"url":{},"form":{}}"#, true, true),
        ] {
            let offer = offer(&format!(r#"{{"elicitation":{capability}}}"#), &ALL);
            assert_eq!(offer.admits(Question::Elicit, false), form, "{capability}");
            assert_eq!(offer.admits(Question::Elicit, true), url, "{capability}");
            assert!(!offer.admits(Question::Sample, false));
            assert!(!offer.admits(Question::Roots, false));
        }
    }

    #[test]
    fn clients_are_told_of_what_is_relayed() {
        assert_eq!(
            of_server(
                r#"{"prompts":{},"tools":{"listChanged":true,"x":1},"tasks":{"list":{}},"logging":{},"extensions":{},"resources":7}"#
            ),
            r#"{"prompts":{},"tools":{"listChanged":true,"x":1},"logging":{}}"#
        );
        assert_eq!(of_server("7"), "{}");
    }
}
