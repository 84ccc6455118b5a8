//! What the demo prints, in colour where a terminal shows it.

use std::io::{self, Write};

const BOLD: &str = "1";
const DIM: &str = "2";
const GREEN: &str = "32";
const RED: &str = "31";
const CYAN: &str = "36";

/// How long a line of an answer may be.
const WIDTH: usize = 96;

/// A place to print to.
pub struct Screen<'w> {
    out: &'w mut dyn Write,
    colour: bool,
}

impl std::fmt::Debug for Screen<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Screen")
            .field("colour", &self.colour)
            .finish_non_exhaustive()
    }
}

impl<'w> Screen<'w> {
    /// Prints to `out`, with escape sequences for colours if `colour`.
    pub fn new(out: &'w mut dyn Write, colour: bool) -> Self {
        Self { out, colour }
    }

    /// Begins a part.
    pub fn title(&mut self, text: &str) -> io::Result<()> {
        let text = self.painted(BOLD, text);
        writeln!(self.out, "\n{text}")
    }

    /// Why the part is there.
    pub fn note(&mut self, text: &str) -> io::Result<()> {
        let text = self.painted(DIM, text);
        writeln!(self.out, "   {text}")
    }

    /// What is sent.
    pub fn sent(&mut self, text: &str) -> io::Result<()> {
        let arrow = self.painted(CYAN, "→");
        writeln!(self.out, "   {arrow} {text}")
    }

    /// What comes back.
    pub fn received(&mut self, text: &str) -> io::Result<()> {
        let mut mark = self.painted(CYAN, "←");
        for line in wrapped(text) {
            writeln!(self.out, "   {mark} {line}")?;
            " ".clone_into(&mut mark);
        }
        self.out.flush()
    }

    /// Whether it went as it should.
    pub fn verdict(&mut self, good: bool, text: &str) -> io::Result<()> {
        let mark = if good {
            self.painted(GREEN, "✔")
        } else {
            self.painted(RED, "✘")
        };
        writeln!(self.out, "   {mark} {text}")?;
        self.out.flush()
    }

    /// A line as it is.
    pub fn plain(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "   {text}")
    }

    fn painted(&self, colour: &str, text: &str) -> String {
        if self.colour {
            format!("\u{1b}[{colour}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}

/// The words of a text in lines of at most [`WIDTH`] characters, where words are not longer; at least one line.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("it begins with one line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + word.chars().count() < WIDTH {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_only_where_they_are_wanted() {
        let printed = |colour| {
            let mut out = Vec::new();
            Screen::new(&mut out, colour)
                .verdict(true, "as it should be")
                .unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(printed(false), "   ✔ as it should be\n");
        assert_eq!(printed(true), "   \u{1b}[32m✔\u{1b}[0m as it should be\n");
    }

    #[test]
    fn long_answers_are_wrapped_between_words() {
        let long = "x".repeat(100);
        let text = format!("{} {long} b", "seven77".repeat(13));
        assert_eq!(wrapped(&text), ["seven77".repeat(13), long, "b".to_owned()]);
        assert_eq!(wrapped("a b"), ["a b"]);
        assert_eq!(wrapped(""), [""]);
    }
}
