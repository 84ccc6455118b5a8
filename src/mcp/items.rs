//! A list result, cut into its items without changing a byte of them.

use std::{borrow::Cow, ops::Range};

use super::{
    Method,
    scan::{Part, Rules, ScanError, Scanner, lookalike},
};
use crate::refusal::{Code, Refusal};

/// The longest name of an item, in bytes; the specification recommends 128 characters for tools.
pub const MAX_NAME_BYTES: usize = 512;

/// A list whose items a model sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// `tools/list`.
    Tools,
    /// `prompts/list`.
    Prompts,
    /// `resources/templates/list`.
    Templates,
}

impl List {
    /// The request that asks for it.
    pub fn method(self) -> Method {
        match self {
            Self::Tools => Method::ToolsList,
            Self::Prompts => Method::PromptsList,
            Self::Templates => Method::TemplatesList,
        }
    }

    /// What one item is called.
    pub fn item(self) -> &'static str {
        match self {
            Self::Tools => "tool",
            Self::Prompts => "prompt",
            Self::Templates => "template",
        }
    }

    /// The member of the result that holds it.
    pub fn array(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Templates => "resourceTemplates",
        }
    }

    /// The member of an item that tells it from others.
    fn key(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Templates => "uriTemplate",
        }
    }
}

/// One item of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed<'a> {
    /// What tells it from others, decoded: its name, or `uriTemplate`.
    pub name: Cow<'a, str>,
    /// The definition, an object.
    pub definition: Part<'a>,
}

/// What becomes of an item of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate<T> {
    /// It stays as it is.
    Keep,
    /// It is left out.
    Drop,
    /// This JSON text stands in its place.
    Replace(T),
}

/// One page; ranges are bytes of the message that holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<'a> {
    /// The items, in the server's order.
    pub items: Vec<Listed<'a>>,
    /// The JSON text of `nextCursor`, a string.
    pub next_cursor: Option<Part<'a>>,
    array: Part<'a>,
}

impl<'a> Page<'a> {
    /// Reads the `result` of an answer that is a page of `list`, which may hold `max` items.
    ///
    /// # Errors
    /// [`Code::UpstreamMalformed`] where it is no such result, or has a member that decides which items there are twice,
    /// or beside it one that some readers take for it; [`Code::CatalogTooLarge`].
    pub fn read(result: Part<'a>, list: List, max: usize) -> Result<Self, Refusal> {
        let reader = Reader {
            scanner: Scanner::new(result.as_str().as_bytes(), Rules::Loose)
                .map_err(|error| malformed(list, error.to_string()))?,
            list,
            max,
        };
        let mut page = reader.page()?;
        let offset = result.range().start;
        for item in &mut page.items {
            item.definition = item.definition.shifted(offset);
        }
        page.next_cursor = page.next_cursor.map(|cursor| cursor.shifted(offset));
        page.array = page.array.shifted(offset);
        Ok(page)
    }

    /// Where the array of items stands.
    pub fn range(&self) -> Range<usize> {
        self.array.range()
    }

    /// The array after each item met its fate, and with the definition `more` behind them, to be put in place of
    /// [`Page::range`]; `None` if all stay and none is added.
    pub fn rewritten<T: AsRef<str>>(
        &self,
        fates: &[Fate<T>],
        more: Option<&str>,
    ) -> Option<String> {
        if more.is_none() && fates.iter().all(|fate| matches!(fate, Fate::Keep)) {
            return None;
        }
        let more = more.map(Some);
        let items = self.items.iter().zip(fates);
        let offered = items.map(|(item, fate)| match fate {
            Fate::Keep => Some(item.definition.as_str()),
            Fate::Drop => None,
            Fate::Replace(text) => Some(text.as_ref()),
        });
        let mut out = String::with_capacity(self.array.as_str().len());
        for text in offered.chain(more).flatten() {
            out.push(if out.is_empty() { '[' } else { ',' });
            out.push_str(text);
        }
        out.push_str(if out.is_empty() { "[]" } else { "]" });
        Some(out)
    }
}

struct Reader<'a> {
    scanner: Scanner<'a>,
    list: List,
    max: usize,
}

impl<'a> Reader<'a> {
    fn page(mut self) -> Result<Page<'a>, Refusal> {
        let (mut listed, mut cursor) = (None, None);
        let array = self.list.array();
        self.check(|scanner| scanner.enter_object())?;
        while let Some(key) = self.check(Scanner::key)? {
            if key == array && listed.is_none() {
                listed = Some(self.items()?);
            } else if key == "nextCursor" && cursor.is_none() {
                cursor = Some(self.check(Scanner::value)?);
            } else if key == array || key == "nextCursor" {
                return Err(self.malformed(format!("`{key}` stands twice")));
            } else if let Some(member) = lookalike(&key, &[array, "nextCursor"]) {
                return Err(self.malformed(format!("a member looks like `{member}`")));
            } else {
                self.check(Scanner::value)?;
            }
        }
        // Some servers end their list with a null cursor.
        let next_cursor = cursor.filter(|part| part.as_str() != "null");
        if next_cursor.is_some_and(|part| part.string().is_none()) {
            return Err(self.malformed("`nextCursor` is not a string"));
        }
        let Some((items, array)) = listed else {
            return Err(self.malformed(format!("`{array}` is missing")));
        };
        Ok(Page {
            items,
            next_cursor,
            array,
        })
    }

    fn items(&mut self) -> Result<(Vec<Listed<'a>>, Part<'a>), Refusal> {
        self.scanner.peek();
        let start = self.scanner.position();
        self.check(|scanner| scanner.enter_array())?;
        let mut items = Vec::new();
        while self.check(Scanner::element)? {
            if items.len() == self.max {
                let (max, item) = (self.max, self.list.item());
                return Err(Refusal::new(
                    Code::CatalogTooLarge,
                    format!("the server offers more than {max} {item}s"),
                ));
            }
            items.push(self.item()?);
        }
        Ok((items, self.scanner.part(start..self.scanner.position())))
    }

    fn item(&mut self) -> Result<Listed<'a>, Refusal> {
        self.scanner.peek();
        let start = self.scanner.position();
        let (item, member) = (self.list.item(), self.list.key());
        let mut name: Option<Part<'a>> = None;
        let mut twice = false;
        self.check(|scanner| scanner.enter_object())?;
        while let Some(key) = self.check(Scanner::key)? {
            let value = self.check(Scanner::value)?;
            if key == member {
                twice |= name.replace(value).is_some();
            } else if lookalike(&key, &[member]).is_some() {
                return Err(self.malformed(format!("a member of a {item} looks like `{member}`")));
            }
        }
        if twice {
            return Err(self.malformed(format!("a {item}'s `{member}` stands twice")));
        }
        let Some(name) = name.and_then(|part| part.string()) else {
            return Err(self.malformed(format!("a {item}'s `{member}` is not a string")));
        };
        if name.is_empty() || name.len() > MAX_NAME_BYTES {
            return Err(self.malformed(format!(
                "a {item}'s `{member}` is empty or longer than {MAX_NAME_BYTES} bytes"
            )));
        }
        Ok(Listed {
            name,
            definition: self.scanner.part(start..self.scanner.position()),
        })
    }

    fn check<T>(
        &mut self,
        step: impl FnOnce(&mut Scanner<'a>) -> Result<T, ScanError>,
    ) -> Result<T, Refusal> {
        step(&mut self.scanner).map_err(|error| self.malformed(error.to_string()))
    }

    fn malformed(&self, detail: impl Into<String>) -> Refusal {
        malformed(self.list, detail)
    }
}

fn malformed(list: List, detail: impl Into<String>) -> Refusal {
    let item = list.item();
    Refusal::new(
        Code::UpstreamMalformed,
        format!("the server's list of {item}s is not valid"),
    )
    .with_detail(detail)
}

#[cfg(test)]
mod tests;
