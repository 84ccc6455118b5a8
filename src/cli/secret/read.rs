//! A secret that the operator types or pipes in: never an argument, and never shown.

use std::{
    io::{self, BufRead, IsTerminal, Read, Write},
    str,
};

use nix::sys::termios::{self, LocalFlags, SetArg, Termios};
use zeroize::Zeroizing;

use crate::{
    app::control::Typed,
    cli::{Exit, socket::complain},
};

/// The longest secret in bytes.
const LONGEST: usize = 8192;
/// Room for one byte too many and for the end of a line.
const ROOM: usize = LONGEST + 3;

const END_OF_TEXT: u8 = 0x03;
const END_OF_INPUT: u8 = 0x04;
const BACKSPACE: u8 = 0x08;
const ERASE_LINE: u8 = 0x15;
const DELETE: u8 = 0x7f;

/// Whether a person will be asked for it.
pub(super) fn is_typed() -> bool {
    io::stdin().is_terminal()
}

/// Reads it from standard input: asked for on a terminal, else all that comes, less the end of its only line.
pub(super) fn secret(server: &str) -> Result<Typed, Exit> {
    let stdin = io::stdin();
    let read = match stdin.is_terminal() {
        true => asked(server),
        false => piped(stdin.lock()).map(Some),
    };
    let secret = match read {
        Ok(Some(secret)) => secret,
        Ok(None) => {
            complain(&["nothing was changed"]);
            return Err(Exit::Failed);
        }
        Err(error) => {
            complain(&[format!("the secret cannot be read: {error}")]);
            return Err(Exit::Failed);
        }
    };
    match str::from_utf8(&secret) {
        Ok(text) if !text.is_empty() && text.len() <= LONGEST => {
            Ok(Typed(Zeroizing::new(text.to_owned())))
        }
        _ => {
            let expected = format!(
                "expected a secret of 1 to {LONGEST} visible ASCII characters, found {}",
                match secret.len() {
                    0 => "nothing",
                    length if length > LONGEST => "more",
                    _ => "other bytes",
                }
            );
            complain(&[expected]);
            Err(Exit::Failed)
        }
    }
}

fn piped(input: impl Read) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut secret = Zeroizing::new(Vec::with_capacity(ROOM));
    input.take(ROOM as u64).read_to_end(&mut secret)?;
    for end in [b'\n', b'\r'] {
        if secret.last() == Some(&end) {
            secret.pop();
        }
    }
    Ok(secret)
}

/// `None` where whoever was asked broke it off.
fn asked(server: &str) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
    let mut out = io::stderr().lock();
    let question = format!("Secret for `{}` (not shown): ", server.escape_debug());
    out.write_all(question.as_bytes())?;
    out.flush()?;
    let quiet = Quiet::begin()?;
    let line = typed(io::stdin().lock());
    drop(quiet);
    out.write_all(b"\n")?;
    line
}

/// What is typed up to the end of the line; keys that a terminal serves itself otherwise are served here.
fn typed(input: impl BufRead) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
    let mut line = Zeroizing::new(Vec::with_capacity(ROOM));
    for byte in input.bytes() {
        match byte? {
            b'\n' | b'\r' => return Ok(Some(line)),
            END_OF_TEXT | END_OF_INPUT => return Ok(None),
            BACKSPACE | DELETE => drop(line.pop()),
            ERASE_LINE => line.clear(),
            // One too many is told of as too long.
            _ if line.len() > LONGEST => {}
            other => line.push(other),
        }
    }
    Ok(None)
}

/// A terminal that shows nothing, until dropped. It sends no signals either: a process that one ends leaves it so.
struct Quiet(Termios);

impl Quiet {
    fn begin() -> io::Result<Self> {
        let before = termios::tcgetattr(io::stdin())?;
        let mut quiet = before.clone();
        let flags = LocalFlags::ECHO | LocalFlags::ICANON | LocalFlags::ISIG;
        quiet.local_flags.remove(flags);
        termios::tcsetattr(io::stdin(), SetArg::TCSAFLUSH, &quiet)?;
        Ok(Self(before))
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // Where the terminal is gone there is nothing to put back.
        let _ = termios::tcsetattr(io::stdin(), SetArg::TCSAFLUSH, &self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_piped_in_loses_one_end_of_a_line() {
        let read = |text: &str| piped(text.as_bytes()).unwrap().to_vec();
        for text in ["s-1", "s-1\n", "s-1\r\n"] {
            assert_eq!(read(text), b"s-1");
        }
        assert_eq!(read("s-1\n\n"), b"s-1\n", "which cannot be sent");
        assert_eq!(read(""), b"");
        assert_eq!(read(&"a".repeat(20_000)).len(), 8195, "too long, told so");
    }

    #[test]
    fn what_is_typed_ends_with_the_line_and_can_be_broken_off() {
        let read = |text: &str| {
            let line = typed(text.as_bytes()).unwrap();
            line.map(|line| String::from_utf8(line.to_vec()).unwrap())
        };
        assert_eq!(read("s-1\rmore").as_deref(), Some("s-1"));
        assert_eq!(read("s-12\u{7f}\n").as_deref(), Some("s-1"));
        assert_eq!(read("wrong\u{15}s-1\n").as_deref(), Some("s-1"));
        assert_eq!(read("\u{8}\n").as_deref(), Some(""));
        for broken_off in ["s\u{3}", "s\u{4}", "s"] {
            assert_eq!(read(broken_off), None);
        }
        let long = format!("{}\n", "a".repeat(9000));
        assert_eq!(read(&long).map(|line| line.len()), Some(8193));
    }
}
