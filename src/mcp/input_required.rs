//! Answers that ask in place of completing: results (MCP 2026-07-28, multi round-trip requests) and errors
//! (MCP 2025-11-25, elicitation).

use super::{
    Params, Question,
    scan::{Part, Rules, ScanError, Scanner},
};

/// Questions of one result at most.
pub const MAX_QUESTIONS: usize = 16;

/// The members that decide what a client does.
const MEMBERS: [&str; 3] = ["resultType", "inputRequests", "requestState"];
/// The members of one question.
const QUESTION_MEMBERS: [&str; 2] = ["method", "params"];

/// What a server wants to know, and what it wants to be told again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputRequired<'a> {
    /// The questions; none where the request is only to be repeated.
    pub questions: Vec<(Question, Option<Params<'a>>)>,
    /// `requestState`, a string, which the client repeats with its answers.
    pub state: Option<Part<'a>>,
}

/// Why a result asks for nothing that could be answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// Something that clients would read in different ways.
    #[error(transparent)]
    Scan(#[from] ScanError),
    /// Not of the form that MCP gives it.
    #[error("{0}")]
    Form(&'static str),
}

impl<'a> InputRequired<'a> {
    /// Reads a result under [`Rules::Strict`]: the questions that are judged are those that every client sees.
    ///
    /// # Errors
    ///
    /// It is not of that form, or asks more than [`MAX_QUESTIONS`].
    pub fn read(result: &'a str) -> Result<Self, InputError> {
        let mut scanner = Scanner::new(result.as_bytes(), Rules::Strict)?;
        let (mut questions, mut state) = (None, None);
        scanner.enter_object()?;
        while let Some(key) = scanner.key()? {
            match &*key {
                "resultType" => drop(scanner.value()?),
                "inputRequests" => questions = Some(all(&mut scanner)?),
                "requestState" => state = Some(scanner.value()?),
                key => drop(scanner.other(key, &MEMBERS)?),
            }
        }
        scanner.end()?;
        if questions.is_none() && state.is_none() {
            return Err(InputError::Form(
                "neither `inputRequests` nor `requestState`",
            ));
        }
        if state.is_some_and(|state| state.string().is_none()) {
            return Err(InputError::Form("`requestState` is not a string"));
        }
        Ok(Self {
            questions: questions.unwrap_or_default(),
            state,
        })
    }
}

/// The pages that an error wants people to open before the request is repeated: `data.elicitations`, whatever the code,
/// read under [`Rules::Strict`] where it may be there.
///
/// # Errors
///
/// It is not of that form, or clients would read it in different ways.
pub fn wanted_pages(error: &str) -> Result<Vec<Params<'_>>, InputError> {
    let mut found = Vec::new();
    // Nearly no error asks, and what others hold is nobody's business.
    if !error.contains(r"\u") && !error.to_ascii_lowercase().contains("elicitation") {
        return Ok(found);
    }
    let mut scanner = Scanner::new(error.as_bytes(), Rules::Strict)?;
    scanner.enter_object()?;
    while let Some(key) = scanner.key()? {
        match &*key {
            "data" if scanner.peek() == Some(b'{') => wanted(&mut scanner, &mut found)?,
            "code" | "message" | "data" => drop(scanner.value()?),
            key => drop(scanner.other(key, &["code", "message", "data"])?),
        }
    }
    Ok(found)
}

fn wanted<'a>(scanner: &mut Scanner<'a>, found: &mut Vec<Params<'a>>) -> Result<(), InputError> {
    scanner.enter_object()?;
    while let Some(key) = scanner.key()? {
        if key != "elicitations" {
            scanner.other(&key, &["elicitations"])?;
            continue;
        }
        scanner.enter_array()?;
        while scanner.element()? {
            if found.len() == MAX_QUESTIONS {
                return Err(InputError::Form("more than 16 questions at once"));
            }
            let page = Params::scan(scanner)?;
            found.push(*page.ok_or(InputError::Form("an elicitation that is no object"))?);
        }
    }
    Ok(())
}

fn all<'a>(scanner: &mut Scanner<'a>) -> Result<Vec<(Question, Option<Params<'a>>)>, InputError> {
    let mut questions = Vec::new();
    scanner.enter_object()?;
    while scanner.key()?.is_some() {
        if questions.len() == MAX_QUESTIONS {
            return Err(InputError::Form("more than 16 questions at once"));
        }
        questions.push(question(scanner)?);
    }
    Ok(questions)
}

fn question<'a>(scanner: &mut Scanner<'a>) -> Result<(Question, Option<Params<'a>>), InputError> {
    let (mut method, mut params) = (None, None);
    scanner.enter_object()?;
    while let Some(key) = scanner.key()? {
        match &*key {
            "method" => method = scanner.value()?.string(),
            "params" => {
                let found = Params::scan(scanner)?;
                params = Some(*found.ok_or(InputError::Form("`params` that are no object"))?);
            }
            key => drop(scanner.other(key, &QUESTION_MEMBERS)?),
        }
    }
    let found = method.and_then(|method| Question::find(&method));
    match found.ok_or(InputError::Form("a question that MCP does not know"))? {
        Question::Elicit | Question::Sample if params.is_none() => {
            Err(InputError::Form("a question without `params`"))
        }
        question => Ok((question, params)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(result: &str) -> String {
        InputRequired::read(result)
            .expect_err("it asks for nothing")
            .to_string()
    }

    #[test]
    fn questions_and_state_are_found() {
        let text = r#"{"resultType":"input_required","x":1,"inputRequests":{
            "a":{"method":"elicitation/create","params":{"message":"m","mode":"url","url":"https://e.example/"}},
            "b":{"method":"roots/list","y":[]},
            "c":{"params":{"messages":[]},"method":"sampling/createMessage"}},"requestState":"s\u0074"}"#;
        let read = InputRequired::read(text).expect("it asks");
        let asked: Vec<_> = read.questions.iter().map(|(asked, _)| *asked).collect();
        assert_eq!(asked, [Question::Elicit, Question::Roots, Question::Sample]);
        let mode = read.questions[0].1.as_ref().and_then(|params| params.mode);
        assert_eq!(mode.map(|part| part.as_str()), Some(r#""url""#));
        assert_eq!(
            read.state.map(|part| part.as_str()),
            Some(r#""s\u0074""#),
            "as it was written"
        );
    }

    #[test]
    fn either_member_is_enough() {
        for text in [r#"{"requestState":""}"#, r#"{"inputRequests":{}}"#] {
            let read = InputRequired::read(text).expect("it asks");
            assert!(read.questions.is_empty(), "{text}");
        }
        assert_eq!(
            reason(r#"{"resultType":"input_required"}"#),
            "neither `inputRequests` nor `requestState`"
        );
    }

    #[test]
    fn other_forms_are_refused() {
        for (text, expected) in [
            ("[]", "expected an object at byte 0"),
            (r#"{"requestState":7}"#, "`requestState` is not a string"),
            (r#"{"requestState":null}"#, "`requestState` is not a string"),
            (r#"{"inputRequests":[]}"#, "expected an object at byte 17"),
            (
                r#"{"inputRequests":{"a":7}}"#,
                "expected an object at byte 22",
            ),
            (
                r#"{"inputRequests":{"a":{"method":"ping"}}}"#,
                "a question that MCP does not know",
            ),
            (
                r#"{"inputRequests":{"a":{"params":{}}}}"#,
                "a question that MCP does not know",
            ),
            (
                r#"{"inputRequests":{"a":{"method":"roots/list","params":7}}}"#,
                "`params` that are no object",
            ),
            (
                r#"{"inputRequests":{"a":{"method":"elicitation/create"}}}"#,
                "a question without `params`",
            ),
        ] {
            assert_eq!(reason(text), expected, "{text}");
        }
    }

    /// A client that takes the other of two members would see a question that nobody judged.
    #[test]
    fn what_clients_read_in_different_ways_is_refused() {
        for text in [
            r#"{"requestState":"a","requestState":"b"}"#,
            r#"{"requestState":"a","requeststate":"b"}"#,
            r#"{"inputRequests":{},"InputRequests":{"a":{"method":"roots/list"}}}"#,
            r#"{"inputRequests":{"a":{"method":"roots/list","Method":"x"}}}"#,
            r#"{"inputRequests":{"a":{"method":"elicitation/create","params":{"mode":"url","mode":"form"}}}}"#,
            r#"{"inputRequests":{"a":{"method":"elicitation/create","params":{"mode":"form","Mode":"url"}}}}"#,
            r#"{"inputRequests":{"a":{"method":"elicitation/create","params":{"url":"https://a.example/","URL":"x:"}}}}"#,
        ] {
            assert!(
                matches!(
                    InputRequired::read(text),
                    Err(InputError::Scan(
                        ScanError::DuplicateKey { .. } | ScanError::Lookalike { .. }
                    ))
                ),
                "{text}"
            );
        }
    }

    #[test]
    fn questions_are_counted() {
        let of = |count: usize| {
            let each: Vec<_> = (0..count)
                .map(|n| format!(r#""{n}":{{"method":"roots/list"}}"#))
                .collect();
            format!(r#"{{"inputRequests":{{{}}}}}"#, each.join(","))
        };
        let most = of(MAX_QUESTIONS);
        let read = InputRequired::read(&most).expect("it asks");
        assert_eq!(read.questions.len(), 16);
        assert_eq!(reason(&of(17)), "more than 16 questions at once");
    }
}
