use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use tokio::io::{AsyncRead, AsyncWrite};

use super::*;

/// A server that always has more interim answers to say.
struct Flood(Arc<AtomicUsize>);

const INTERIM: &[u8] = b"HTTP/1.1 100 \r\n\r\n";

impl AsyncRead for Flood {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = self.0.load(Relaxed);
        let endless = INTERIM.iter().cycle().skip(read % INTERIM.len());
        let piece: Vec<u8> = endless.take(buffer.remaining()).copied().collect();
        buffer.put_slice(&piece);
        self.0.store(read + piece.len(), Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Flood {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn interim_heads_are_taken_before_more_is_read() {
    for mut heads in [Heads::default(), Heads::all()] {
        let read = Arc::new(AtomicUsize::new(0));
        let mut live = Live::new(Box::new(Flood(read.clone())));
        let fault = loop {
            let head = poll_fn(|cx| live.poll_head(&Method::GET, &mut heads, cx)).await;
            if let Err(fault) = head {
                break fault;
            }
        };
        assert!(matches!(fault, Fault::LongHead), "{fault:?}");
        let read = read.load(Relaxed);
        assert!(read <= 2 * 64 * 1024, "{read} bytes were read");
    }
}
