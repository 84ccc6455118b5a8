//! Content codings (RFC 9110, section 8.4.1; RFC 8878), decoded as they come and never past a cap.

use std::io::{self, Write};

use brotli_decompressor::DecompressorWriter;
use flate2::write::MultiGzDecoder;
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// The largest zstd window, 8 MiB (RFC 9659).
const ZSTD_WINDOW: u64 = 8 << 20;
/// The longest zstd frame header.
const ZSTD_HEADER: usize = 18;
const BROTLI_BUFFER: usize = 16 * 1024;

/// A stream of one coding.
pub(super) enum Decoder {
    Gzip(Box<MultiGzDecoder<Capped>>),
    Brotli(Box<DecompressorWriter<Capped>>),
    Zstd(Box<Zstd>),
}

/// Why decoding stopped.
#[derive(Debug)]
pub(super) enum DecodeError {
    /// More than the cap came out.
    TooLarge,
    /// The input is not what its coding says.
    Bad(io::Error),
}

impl Decoder {
    /// The decoder that the values of `Content-Encoding` ask for, if any; at most `cap` bytes will come out of it.
    /// Unknown and stacked codings are given back as an error, cut at 64 bytes.
    pub(super) fn of<'a>(
        mut values: impl Iterator<Item = &'a [u8]>,
        cap: usize,
    ) -> Result<Option<Self>, String> {
        let Some(first) = values.next() else {
            return Ok(None);
        };
        let text = String::from_utf8_lossy(first).trim().to_ascii_lowercase();
        if values.next().is_some() {
            return Err(format!("{}, …", text.chars().take(64).collect::<String>()));
        }
        let out = Capped {
            out: Vec::new(),
            left: cap,
            over: false,
        };
        match text.as_str() {
            "" | "identity" => Ok(None),
            "gzip" | "x-gzip" => Ok(Some(Self::Gzip(Box::new(MultiGzDecoder::new(out))))),
            "br" => Ok(Some(Self::Brotli(Box::new(DecompressorWriter::new(
                out,
                BROTLI_BUFFER,
            ))))),
            "zstd" => Ok(Some(Self::Zstd(Box::new(Zstd::new(out))))),
            other => Err(other.chars().take(64).collect()),
        }
    }

    /// The registered name of the coding.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Gzip(_) => "gzip",
            Self::Brotli(_) => "br",
            Self::Zstd(_) => "zstd",
        }
    }

    /// Decodes one piece; gives what can be known so far.
    pub(super) fn push(&mut self, input: &[u8]) -> Result<Vec<u8>, DecodeError> {
        let result = match self {
            Self::Gzip(decoder) => decoder.write_all(input).and_then(|()| decoder.flush()),
            Self::Brotli(decoder) => decoder.write_all(input).and_then(|()| decoder.flush()),
            Self::Zstd(decoder) => decoder.push(input),
        };
        self.give(result)
    }

    /// Ends the stream; an incomplete one is an error.
    pub(super) fn finish(&mut self) -> Result<Vec<u8>, DecodeError> {
        let result = match self {
            Self::Gzip(decoder) => decoder.try_finish(),
            Self::Brotli(decoder) => decoder.close(),
            Self::Zstd(decoder) => decoder.finish(),
        };
        self.give(result)
    }

    fn give(&mut self, result: io::Result<()>) -> Result<Vec<u8>, DecodeError> {
        let capped = match self {
            Self::Gzip(decoder) => decoder.get_mut(),
            Self::Brotli(decoder) => decoder.get_mut(),
            Self::Zstd(decoder) => &mut decoder.out,
        };
        match result {
            Ok(()) => Ok(std::mem::take(&mut capped.out)),
            Err(_) if capped.over => Err(DecodeError::TooLarge),
            Err(error) => Err(DecodeError::Bad(error)),
        }
    }
}

/// Takes bytes until the cap is reached, then refuses.
pub(super) struct Capped {
    out: Vec<u8>,
    left: usize,
    over: bool,
}

impl Write for Capped {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.left {
            self.over = true;
            return Err(io::Error::other("more comes out than is allowed"));
        }
        self.left -= bytes.len();
        self.out.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// zstd, one whole block at a time. What lies within the window comes out only at the end of its frame.
pub(super) struct Zstd {
    decoder: FrameDecoder,
    pending: Vec<u8>,
    in_frame: bool,
    checksum: bool,
    out: Capped,
}

impl Zstd {
    fn new(out: Capped) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(ZSTD_WINDOW);
        Self {
            decoder,
            pending: Vec::new(),
            in_frame: false,
            checksum: false,
            out,
        }
    }

    fn push(&mut self, input: &[u8]) -> io::Result<()> {
        self.pending.extend_from_slice(input);
        let mut at = 0;
        loop {
            let used = if self.in_frame {
                self.block(at)?
            } else {
                self.header(at)?
            };
            if used == 0 {
                self.pending.drain(..at);
                return Ok(());
            }
            at += used;
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        if self.in_frame || !self.pending.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }

    /// Reads a frame header at `at`; 0 where it is not complete yet.
    fn header(&mut self, at: usize) -> io::Result<usize> {
        let input = &self.pending[at..];
        // Magic number, then the descriptor, whose bit 2 announces a checksum.
        let Some(&descriptor) = input.get(4) else {
            return Ok(0);
        };
        let mut rest = input;
        match self.decoder.reset(&mut rest) {
            Ok(()) => {}
            Err(_) if input.len() < ZSTD_HEADER => return Ok(0),
            Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
        }
        self.in_frame = true;
        self.checksum = descriptor & 0b100 != 0;
        Ok(input.len() - rest.len())
    }

    /// Decodes the block at `at`; 0 where it is not complete yet.
    fn block(&mut self, at: usize) -> io::Result<usize> {
        let input = &self.pending[at..];
        let &[a, b, c, ..] = input else {
            return Ok(0);
        };
        let head = u32::from_le_bytes([a, b, c, 0]);
        let (last, run) = (head & 1 == 1, (head >> 1) & 3 == 1);
        let size = if run { 1 } else { head >> 3 };
        let checksum = if last && self.checksum { 4 } else { 0 };
        let needed = 3 + usize::try_from(size).expect("21 bits fit") + checksum;
        if input.len() < needed {
            return Ok(0);
        }
        self.decoder
            .decode_blocks(&input[..needed], BlockDecodingStrategy::UptoBlocks(1))
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        self.in_frame = !self.decoder.is_finished();
        self.decoder.collect_to_writer(&mut self.out)?;
        Ok(needed)
    }
}

#[cfg(test)]
mod tests;
