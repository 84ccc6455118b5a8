//! The chunked coding (RFC 9112, section 7.1), undone in the buffer that was read into.

use bytes::{Buf as _, Bytes, BytesMut};

use super::Fault;

/// The most bytes of a line that gives a size.
const MAX_LINE: usize = 4 * 1024;
/// The most bytes of chunk extensions, padding and trailer fields that the data of a body does not outweigh.
const MAX_BESIDE: usize = 16 * 1024;

/// Where in a chunked body its reader stands.
#[derive(Debug, Default)]
pub(in crate::egress) struct Chunked {
    at: Place,
    /// Bytes of extensions, padding and trailers so far, less those of the data: a stream may go on for ever.
    beside: usize,
    /// Whether a size must not be padded.
    exact: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// Before the line that gives the size of a chunk.
    #[default]
    Size,
    /// Within a chunk that has so many more bytes.
    Data(u64),
    /// Before the end of line behind a chunk.
    DataEnd,
    /// Before a trailer field, or the empty line that ends the body.
    Trailer,
    End,
}

impl Chunked {
    /// Of a request: whoever sends one has no old habits that deserve patience.
    pub(in crate::egress) fn of_request() -> Self {
        Self {
            exact: true,
            ..Self::default()
        }
    }

    /// Whether the whole body was decoded.
    pub(in crate::egress) fn is_ended(&self) -> bool {
        self.at == Place::End
    }

    /// Takes what can be decoded from the front of `input`: the data of all chunks in it as one piece, which is not copied
    /// out of the buffer; later chunks are moved up to the first.
    pub(in crate::egress) fn decode(&mut self, input: &mut BytesMut) -> Result<Bytes, Fault> {
        let mut data = Span::default();
        let mut read = 0;
        while !self.is_ended() {
            if let Place::Data(left) = self.at {
                let here = usize::try_from(left).unwrap_or(usize::MAX);
                let here = here.min(input.len() - read);
                if here == 0 {
                    break;
                }
                data.take(input, read, here);
                read += here;
                let left = left - here as u64;
                self.at = if left == 0 {
                    Place::DataEnd
                } else {
                    Place::Data(left)
                };
                continue;
            }
            if let Some((place, taken)) = self.usual(&input[read..]) {
                self.at = place;
                read += taken;
                continue;
            }
            match self.line(&input[read..]) {
                Ok(Some((place, taken))) => {
                    self.at = place;
                    read += taken;
                }
                Ok(None) => break,
                // What came before a fault goes on before it is told.
                Err(_) if data.end > data.start => break,
                Err(fault) => return Err(fault),
            }
        }
        let taken = data.split_from(input);
        input.advance(read - taken.1);
        Ok(taken.0)
    }

    /// The next line where it is as usual, a bare size or the end of a chunk: where the body goes on, and how long it is.
    fn usual(&self, input: &[u8]) -> Option<(Place, usize)> {
        match self.at {
            Place::DataEnd => input.starts_with(b"\r\n").then_some((Place::Size, 2)),
            Place::Size => {
                let mut size = 0;
                for (at, byte) in input.iter().enumerate().take(8) {
                    match char::from(*byte).to_digit(16) {
                        Some(digit) => size = size << 4 | u64::from(digit),
                        None if at > 0 && size > 0 && input[at..].starts_with(b"\r\n") => {
                            return Some((Place::Data(size), at + 2));
                        }
                        None => return None,
                    }
                }
                None
            }
            Place::Data(_) | Place::Trailer | Place::End => None,
        }
    }

    /// The next line: where the body goes on behind it, and how long it is; `None` where its end has not come.
    fn line(&mut self, input: &[u8]) -> Result<Option<(Place, usize)>, Fault> {
        let line = line(input)?;
        line.map(|line| Ok((self.after(line)?, line.len() + 2)))
            .transpose()
    }

    /// Where the body goes on behind a line.
    fn after(&mut self, line: &[u8]) -> Result<Place, Fault> {
        Ok(match self.at {
            Place::Size => {
                let (size, beside) = size(line, self.exact)?;
                self.pass(beside)?;
                let data = usize::try_from(size).unwrap_or(usize::MAX);
                self.beside = self.beside.saturating_sub(data);
                if size == 0 {
                    Place::Trailer
                } else {
                    Place::Data(size)
                }
            }
            Place::DataEnd if line.is_empty() => Place::Size,
            Place::DataEnd => return Err(Fault::Chunks("a chunk is longer than its size")),
            Place::Trailer if line.is_empty() => Place::End,
            Place::Trailer => {
                self.pass(line.len())?;
                Place::Trailer
            }
            place @ (Place::Data(_) | Place::End) => place,
        })
    }

    fn pass(&mut self, beside: usize) -> Result<(), Fault> {
        self.beside += beside;
        match self.beside <= MAX_BESIDE {
            true => Ok(()),
            false => Err(Fault::Chunks("too much stands beside the data")),
        }
    }
}

/// The first line, without its end; `None` where its end has not come.
fn line(input: &[u8]) -> Result<Option<&[u8]>, Fault> {
    let within = &input[..input.len().min(MAX_LINE)];
    let Some(end) = memchr::memchr(b'\n', within) else {
        return match within.len() < MAX_LINE {
            true => Ok(None),
            false => Err(Fault::Chunks("a line is too long")),
        };
    };
    match within[..end].strip_suffix(b"\r") {
        Some(line) if !line.contains(&b'\r') => Ok(Some(line)),
        _ => Err(Fault::Chunks("a line does not end in CRLF")),
    }
}

/// The size of a chunk, and how many bytes stand beside it.
fn size(line: &[u8], exact: bool) -> Result<(u64, usize), Fault> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit());
    let (digits, beside) = line.split_at(digits.count());
    // Some servers pad the size with spaces.
    let extension = if exact {
        beside
    } else {
        beside.trim_ascii_start()
    };
    if digits.is_empty() || digits.len() > 16 || !matches!(extension, [] | [b';', ..]) {
        return Err(Fault::Chunks("a size is no hexadecimal number"));
    }
    let digit = |byte: &u8| u64::from(char::from(*byte).to_digit(16).unwrap_or_default());
    let size = digits.iter().fold(0, |size, byte| size << 4 | digit(byte));
    Ok((size, beside.len()))
}

/// The data that was found: a first part in its place, and what was moved up to it.
#[derive(Default)]
struct Span {
    start: usize,
    end: usize,
}

impl Span {
    fn take(&mut self, input: &mut BytesMut, at: usize, length: usize) {
        if self.end == 0 {
            self.start = at;
            self.end = at;
        }
        if self.end != at {
            input.copy_within(at..at + length, self.end);
        }
        self.end += length;
    }

    /// The data, and how many bytes of `input` went with it.
    fn split_from(self, input: &mut BytesMut) -> (Bytes, usize) {
        if self.end == self.start {
            return (Bytes::new(), 0);
        }
        input.advance(self.start);
        (input.split_to(self.end - self.start).freeze(), self.end)
    }
}

#[cfg(test)]
mod tests;
