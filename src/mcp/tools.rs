//! A `tools/list` result, cut into tools without changing a byte of them.

use std::{borrow::Cow, ops::Range};

use super::scan::{Part, Rules, ScanError, Scanner};
use crate::refusal::{Code, Refusal};

/// The longest tool name, in bytes; the specification recommends 128 characters.
pub const MAX_NAME_BYTES: usize = 512;

/// One tool of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool<'a> {
    /// Its name, decoded.
    pub name: Cow<'a, str>,
    /// The definition, an object.
    pub definition: Part<'a>,
}

/// One page of tools; ranges are bytes of the message that holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<'a> {
    /// The tools, in the server's order.
    pub tools: Vec<Tool<'a>>,
    /// The JSON text of `nextCursor`, a string.
    pub next_cursor: Option<Part<'a>>,
    array: Part<'a>,
}

impl<'a> Page<'a> {
    /// Reads the `result` of an answer to `tools/list`, which may hold `max` tools.
    ///
    /// # Errors
    /// [`Code::UpstreamMalformed`] where it is no such result, or names a member twice that decides which tools there
    /// are; [`Code::CatalogTooLarge`].
    pub fn read(result: Part<'a>, max: usize) -> Result<Self, Refusal> {
        let mut reader = Reader {
            scanner: Scanner::new(result.as_str().as_bytes(), Rules::Loose).map_err(invalid)?,
            max,
        };
        let (listed, next_cursor) = reader.page()?;
        let Some(Listed { mut tools, array }) = listed else {
            return Err(malformed("`tools` is missing"));
        };
        let offset = result.range().start;
        for tool in &mut tools {
            tool.definition = tool.definition.shifted(offset);
        }
        Ok(Self {
            tools,
            next_cursor: next_cursor.map(|cursor| cursor.shifted(offset)),
            array: array.shifted(offset),
        })
    }

    /// Where the array of tools stands.
    pub fn range(&self) -> Range<usize> {
        self.array.range()
    }

    /// The array without the tools that `keep` refuses, to be put in place of [`Page::range`]; `None` if all stay.
    pub fn filtered(&self, mut keep: impl FnMut(&Tool<'a>) -> bool) -> Option<Vec<u8>> {
        let kept: Vec<&Tool<'a>> = self.tools.iter().filter(|tool| keep(tool)).collect();
        if kept.len() == self.tools.len() {
            return None;
        }
        let mut out = Vec::with_capacity(self.array.as_str().len());
        out.push(b'[');
        for (at, tool) in kept.into_iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            out.extend_from_slice(tool.definition.as_str().as_bytes());
        }
        out.push(b']');
        Some(out)
    }
}

/// The tools of a page, and the array they stand in.
struct Listed<'a> {
    tools: Vec<Tool<'a>>,
    array: Part<'a>,
}

struct Reader<'a> {
    scanner: Scanner<'a>,
    max: usize,
}

impl<'a> Reader<'a> {
    fn page(&mut self) -> Result<(Option<Listed<'a>>, Option<Part<'a>>), Refusal> {
        let (mut tools, mut cursor) = (None, None);
        self.scanner.enter_object().map_err(invalid)?;
        while let Some(key) = self.scanner.key().map_err(invalid)? {
            match &*key {
                "tools" if tools.is_none() => tools = Some(self.tools()?),
                "nextCursor" if cursor.is_none() => {
                    cursor = Some(self.scanner.value().map_err(invalid)?)
                }
                "tools" | "nextCursor" => return Err(malformed(format!("`{key}` stands twice"))),
                _ => drop(self.scanner.value().map_err(invalid)?),
            }
        }
        // Some servers end their list with a null cursor.
        let cursor = cursor.filter(|part| part.as_str() != "null");
        if cursor.is_some_and(|part| part.string().is_none()) {
            return Err(malformed("`nextCursor` is not a string"));
        }
        Ok((tools, cursor))
    }

    fn tools(&mut self) -> Result<Listed<'a>, Refusal> {
        self.scanner.peek();
        let start = self.scanner.position();
        self.scanner.enter_array().map_err(invalid)?;
        let mut tools = Vec::new();
        while self.scanner.element().map_err(invalid)? {
            if tools.len() == self.max {
                return Err(Refusal::new(
                    Code::CatalogTooLarge,
                    format!("the server offers more than {} tools", self.max),
                ));
            }
            tools.push(self.tool()?);
        }
        Ok(Listed {
            tools,
            array: self.scanner.part(start..self.scanner.position()),
        })
    }

    fn tool(&mut self) -> Result<Tool<'a>, Refusal> {
        self.scanner.peek();
        let start = self.scanner.position();
        let mut name: Option<Part<'a>> = None;
        self.scanner.enter_object().map_err(invalid)?;
        while let Some(key) = self.scanner.key().map_err(invalid)? {
            let value = self.scanner.value().map_err(invalid)?;
            if key == "name" && name.replace(value).is_some() {
                return Err(malformed("a tool's `name` stands twice"));
            }
        }
        let Some(name) = name.and_then(|part| part.string()) else {
            return Err(malformed("a tool's `name` is not a string"));
        };
        if name.is_empty() || name.len() > MAX_NAME_BYTES {
            return Err(malformed(format!(
                "a tool's `name` is empty or longer than {MAX_NAME_BYTES} bytes"
            )));
        }
        Ok(Tool {
            name,
            definition: self.scanner.part(start..self.scanner.position()),
        })
    }
}

fn invalid(error: ScanError) -> Refusal {
    malformed(error.to_string())
}

fn malformed(detail: impl Into<String>) -> Refusal {
    Refusal::new(
        Code::UpstreamMalformed,
        "the server's list of tools is not valid",
    )
    .with_detail(detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::{Envelope, envelope::splice};

    const LIST: &str = r##"{"jsonrpc":"2.0","id":1,"result":{ "tools" : [ {"name":"a","inputSchema":{"$ref":"#/x","n":1.0}} ,
        {"x-odd":{"k":1,"k":2},"name":"\u0062"},{"name":"c"} ],"nextCursor":"","ttlMs":5}}"##;

    fn page(message: &str) -> Result<Vec<String>, Code> {
        let envelope = Envelope::upstream(message.as_bytes()).expect("a response");
        let result = envelope.result.expect("a result").whole;
        let page = Page::read(result, 3).map_err(|refusal| refusal.code)?;
        Ok(page
            .tools
            .into_iter()
            .map(|tool| tool.name.into_owned())
            .collect())
    }

    #[test]
    fn tools_are_taken_out_and_the_rest_keeps_its_bytes() {
        let envelope = Envelope::upstream(LIST.as_bytes()).expect("a response");
        let page = Page::read(envelope.result.expect("a result").whole, 3).expect("a page");
        assert_eq!(page.next_cursor.map(|part| part.as_str()), Some("\"\""));
        assert_eq!(
            page.tools[1].definition.as_str(),
            r#"{"x-odd":{"k":1,"k":2},"name":"\u0062"}"#
        );
        assert_eq!(&LIST[page.tools[2].definition.range()], r#"{"name":"c"}"#);
        assert_eq!(page.filtered(|_| true), None);
        assert_eq!(page.filtered(|_| false).as_deref(), Some(b"[]".as_slice()));
        let array = page.filtered(|tool| tool.name != "b").expect("one went");
        let whole = splice(LIST.as_bytes(), &[(page.range(), &array)]);
        assert_eq!(
            String::from_utf8(whole).expect("text"),
            r##"{"jsonrpc":"2.0","id":1,"result":{ "tools" : [{"name":"a","inputSchema":{"$ref":"#/x","n":1.0}},{"name":"c"}],"nextCursor":"","ttlMs":5}}"##
        );
    }

    #[test]
    fn lists_that_are_none_are_refused() {
        let of = |result: &str| page(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#));
        assert_eq!(
            of(r#"{"tools":[{"name":"a"},{"name":"a"}],"nextCursor":null}"#),
            Ok(vec!["a".into(), "a".into()])
        );
        assert_eq!(of(r#"{"tools":[]}"#), Ok(vec![]));
        for result in [
            "7",
            "{}",
            r#"{"tools":{}}"#,
            r#"{"tools":[7]}"#,
            r#"{"tools":[{}]}"#,
            r#"{"tools":[{"name":7}]}"#,
            r#"{"tools":[{"name":""}]}"#,
            r#"{"tools":[{"name":"a","name":"b"}]}"#,
            r#"{"tools":[],"tools":[]}"#,
            r#"{"tools":[],"nextCursor":7}"#,
        ] {
            assert_eq!(of(result), Err(Code::UpstreamMalformed), "{result}");
        }
        let long = format!(r#"{{"tools":[{{"name":"{}"}}]}}"#, "n".repeat(513));
        assert_eq!(of(&long), Err(Code::UpstreamMalformed));
        let many = format!(r#"{{"tools":[{}]}}"#, [r#"{"name":"a"}"#; 4].join(","));
        assert_eq!(of(&many), Err(Code::CatalogTooLarge));
    }
}
