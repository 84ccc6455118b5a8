//! Colour and numbers, where a person looks.

use std::{
    env,
    io::{self, IsTerminal},
};

use clap::builder::styling::{AnsiColor, Style};

/// A number of things, in words: `1 server`, `2 servers`.
pub(super) fn counted(number: usize, thing: &str) -> String {
    match number {
        1 => format!("1 {thing}"),
        _ => format!("{number} {thing}s"),
    }
}

/// How texts of a kind are shown; plain where nobody sees colour.
#[derive(Clone, Copy, Debug)]
pub(super) struct Styles {
    on: bool,
}

impl Styles {
    /// For standard output: on a terminal, unless `NO_COLOR` is set.
    pub(super) fn stdout() -> Self {
        let unwanted = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            on: io::stdout().is_terminal() && !unwanted,
        }
    }

    /// Whether anybody sees colour.
    pub(super) fn on(self) -> bool {
        self.on
    }

    /// With colour, whoever looks.
    #[cfg(test)]
    pub(super) fn coloured() -> Self {
        Self { on: true }
    }

    /// Without colour.
    #[cfg(test)]
    pub(super) fn plain() -> Self {
        Self { on: false }
    }

    pub(super) fn good(self, text: &str) -> String {
        self.paint(text, AnsiColor::Green.on_default())
    }

    pub(super) fn bad(self, text: &str) -> String {
        self.paint(text, AnsiColor::Red.on_default().bold())
    }

    pub(super) fn added(self, text: &str) -> String {
        self.paint(text, AnsiColor::Green.on_default())
    }

    pub(super) fn removed(self, text: &str) -> String {
        self.paint(text, AnsiColor::Red.on_default())
    }

    /// What in an added line is new.
    pub(super) fn added_word(self, text: &str) -> String {
        self.paint(text, AnsiColor::Green.on_default().invert())
    }

    /// What in a removed line is gone.
    pub(super) fn removed_word(self, text: &str) -> String {
        self.paint(text, AnsiColor::Red.on_default().invert())
    }

    pub(super) fn dim(self, text: &str) -> String {
        self.paint(text, Style::new().dimmed())
    }

    fn paint(self, text: &str, style: Style) -> String {
        if self.on {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }
}
