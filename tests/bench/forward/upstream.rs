//! What is behind the proxy: answers from memory, sends what it has, or takes what comes; behind a hello or without.

use std::io::Result;

use super::{BODY, SINK, SMALL, SOURCE};
use crate::wire::{self, Wire};

/// Bytes of a write of the source, and of a read of the sink.
const PIECE: usize = 256 * 1024;
const FOUND: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\ncontent-length: ";

/// Serves on 127.0.0.1 until the process is ended.
pub(crate) async fn serve(port: u16) -> Result<()> {
    wire::serve(port, converse).await
}

async fn converse(mut wire: Wire) -> Result<()> {
    let mut answer = format!("{FOUND}{BODY}\r\n\r\n").into_bytes();
    answer.resize(answer.len() + BODY, b'x');
    wire.skip_hello().await?;
    while let Some(head) = wire.head().await? {
        if head.asks_for(SOURCE) {
            let piece = vec![b'x'; PIECE];
            loop {
                wire.write(&piece).await?;
            }
        } else if head.asks_for(SINK) {
            let mut piece = vec![0; PIECE];
            while wire.read(&mut piece).await? > 0 {}
            return Ok(());
        } else if head.asks_for(SMALL) {
            wire.write(&answer).await?;
        } else {
            wire.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
                .await?;
        }
        if head.field("connection") == Some("close") {
            break;
        }
    }
    Ok(())
}
