//! What a thread logs, kept to be searched.

use std::{
    io,
    sync::{Arc, Mutex},
};

use tracing::subscriber::DefaultGuard;

/// A line that is logged first, so that an empty log does not pass for a clean one.
const FIRST: &str = "logs are captured";

/// What is logged.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Keeps what this thread logs, all of it, until the guard goes.
    pub(crate) fn begin() -> (Self, DefaultGuard) {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        let guard = tracing::subscriber::set_default(subscriber);
        tracing::trace!("{FIRST}");
        (log, guard)
    }

    /// All of it.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }

    /// Fails where `mark` was logged.
    pub(crate) fn never_says(&self, mark: &str) {
        let logged = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        assert!(logged.contains(FIRST));
        assert!(!logged.contains(mark), "{logged}");
    }
}
