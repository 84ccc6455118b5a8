//! What a challenge says: `WWW-Authenticate` (RFC 9110, section 11.6.1), of which only `Bearer` counts (RFC 6750,
//! RFC 9728).

use crate::connect::Challenge;

/// Places of metadata that are taken from one answer; what stands after them is left.
pub const MAX_CANDIDATES: usize = 8;

/// Scopes that are taken from one answer.
pub const MAX_SCOPES: usize = 64;

/// The longest value that is taken.
const MAX_VALUE: usize = 2048;

/// What the `Bearer` challenges of one answer say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bearer {
    /// `resource_metadata`, each in the order of its place: servers send more than one.
    pub resource_metadata: Vec<String>,
    /// `scope`, the first that has any.
    pub scope: Option<Vec<String>>,
    /// `error`, the first.
    pub error: Option<String>,
}

impl Challenge {
    /// Reads all lines. What is malformed is left out; the rest counts.
    pub fn bearer(&self) -> Bearer {
        let mut bearer = Bearer::default();
        for line in &self.0 {
            let mut tokens = Tokens { rest: line };
            let mut is_bearer = false;
            while let Some(token) = tokens.next() {
                match token {
                    Token::Scheme(name) => is_bearer = name.eq_ignore_ascii_case(b"bearer"),
                    Token::Param(name, value) if is_bearer => bearer.take(name, &value),
                    Token::Param(..) => {}
                }
            }
        }
        bearer
    }
}

impl Bearer {
    fn take(&mut self, name: &[u8], value: &[u8]) {
        let Ok(value) = std::str::from_utf8(value) else {
            return;
        };
        if value.is_empty() || value.len() > MAX_VALUE {
            return;
        }
        match name.to_ascii_lowercase().as_slice() {
            b"resource_metadata" => {
                let is_new = !self.resource_metadata.iter().any(|known| known == value);
                if is_new && self.resource_metadata.len() < MAX_CANDIDATES {
                    self.resource_metadata.push(value.to_owned());
                }
            }
            b"scope" if self.scope.is_none() => {
                let scopes: Vec<String> = scopes(value).take(MAX_SCOPES).collect();
                self.scope = (!scopes.is_empty()).then_some(scopes);
            }
            b"error" if self.error.is_none() && is_code(value) => {
                self.error = Some(value.to_owned());
            }
            _ => {}
        }
    }
}

/// The scope tokens of a list (RFC 6749, section 3.3), each once; what cannot be one is left out.
pub(super) fn scopes(list: &str) -> impl Iterator<Item = String> {
    let mut known: Vec<&str> = Vec::new();
    for token in list.split_ascii_whitespace() {
        if known.len() < MAX_SCOPES && is_scope(token) && !known.contains(&token) {
            known.push(token);
        }
    }
    known.into_iter().map(str::to_owned)
}

/// Whether it can stand in a list of scopes.
pub(super) fn is_scope(token: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    (1..=256).contains(&token.len()) && token.bytes().all(allowed)
}

/// Whether it can be an error code (RFC 6749, section 5.2) that is fit to be shown and recorded.
pub(super) fn is_code(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    (1..=64).contains(&text.len()) && text.bytes().all(allowed)
}

enum Token<'a> {
    Scheme(&'a [u8]),
    Param(&'a [u8], Vec<u8>),
}

/// One line, token by token.
struct Tokens<'a> {
    rest: &'a [u8],
}

impl<'a> Tokens<'a> {
    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            self.skip(|byte| byte == b',' || is_space(byte));
            let first = *self.rest.first()?;
            let name = self.span(is_token);
            if name.is_empty() {
                self.skip_stray(first);
                continue;
            }
            if let Some(after) = after_equals(self.rest) {
                self.rest = after;
                match self.value() {
                    Some(value) => return Some(Token::Param(name, value)),
                    None => continue,
                }
            }
            self.skip_token68();
            return Some(Token::Scheme(name));
        }
    }

    /// The value of a parameter; `None` where its quotation has no end, which takes the rest of the line with it.
    fn value(&mut self) -> Option<Vec<u8>> {
        if self.rest.first() != Some(&b'"') {
            // Servers leave the quotation marks out around URLs, which are no tokens.
            let bare = self.span(|byte| byte != b',' && byte != b'"' && !is_space(byte));
            return Some(bare.to_vec());
        }
        let mut value = Vec::new();
        let mut bytes = self.rest[1..].iter().enumerate();
        let mut end = None;
        while let Some((at, byte)) = bytes.next() {
            match byte {
                b'"' => {
                    end = Some(at + 2);
                    break;
                }
                b'\\' => value.extend(bytes.next().map(|(_, escaped)| *escaped)),
                other => value.push(*other),
            }
        }
        self.rest = end.map_or(&[], |end| &self.rest[end..]);
        end.map(|_| value)
    }

    /// Passes what may stand behind a scheme instead of parameters: `token68`, up to a comma or the end.
    fn skip_token68(&mut self) {
        let spaces = self.rest.iter().take_while(|byte| is_space(**byte)).count();
        let start = &self.rest[spaces..];
        let body = start.iter().take_while(|byte| is_token68(**byte)).count();
        let pad = start[body..]
            .iter()
            .take_while(|byte| **byte == b'=')
            .count();
        let after = &start[body + pad..];
        let next = after.iter().find(|byte| !is_space(**byte));
        if spaces > 0 && body > 0 && matches!(next, None | Some(b',')) {
            self.rest = after;
        }
    }

    /// Passes a byte that begins nothing; a quotation as a whole, so that nothing inside it is taken for a challenge.
    fn skip_stray(&mut self, first: u8) {
        if first == b'"' {
            self.value();
        } else {
            self.rest = &self.rest[1..];
        }
    }

    fn skip(&mut self, pass: impl Fn(u8) -> bool) {
        self.span(pass);
    }

    fn span(&mut self, pass: impl Fn(u8) -> bool) -> &'a [u8] {
        let length = self.rest.iter().take_while(|byte| pass(**byte)).count();
        let (span, rest) = self.rest.split_at(length);
        self.rest = rest;
        span
    }
}

/// What stands behind `=`, white space around it allowed.
fn after_equals(rest: &[u8]) -> Option<&[u8]> {
    rest.trim_ascii_start()
        .strip_prefix(b"=")
        .map(<[u8]>::trim_ascii_start)
}

fn is_space(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// `tchar` (RFC 9110, section 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// What `token68` consists of, but for its padding (RFC 9110, section 11.2).
fn is_token68(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte)
}

#[cfg(test)]
mod tests;
