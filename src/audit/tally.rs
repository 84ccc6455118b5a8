//! Records of what anybody can cause without a name, in bounded number: of each minute the first are kept each for itself,
//! and the others as one record for each code, which says how many there were.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::{Instant, sleep_until};

use super::{Journal, Kind, OutcomeKind, Phase, Record, Unavailable};
use crate::{clock::Clock, refusal::Code};

/// How long what is left out is counted.
const WINDOW: Duration = Duration::from_secs(60);
/// Records of a window that are kept each for itself.
const EACH: u32 = 60;

/// Keeps a bounded number of records of refusals; cheap to clone.
#[derive(Clone)]
pub struct Tally(Arc<Inner>);

struct Inner {
    journal: Journal,
    clock: Arc<dyn Clock>,
    window: Mutex<Window>,
}

#[derive(Default)]
struct Window {
    /// `None` before the first record.
    since: Option<Instant>,
    kept: u32,
    left: BTreeMap<Code, u64>,
}

impl Tally {
    /// What is kept goes to `journal`.
    pub fn new(journal: Journal, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Inner {
            journal,
            clock,
            window: Mutex::default(),
        }))
    }

    /// Keeps the record of a refusal with this code, or counts it. Needs a tokio runtime.
    ///
    /// # Errors
    ///
    /// Records cannot be kept.
    pub fn queue(&self, code: Code, record: Record) -> Result<(), Unavailable> {
        let now = Instant::now();
        let mut window = self.0.window();
        let lasts = |since| now.saturating_duration_since(since) < WINDOW;
        if !window.since.is_some_and(lasts) {
            self.0.tell(&mut window.left)?;
            (window.since, window.kept) = (Some(now), 0);
        }
        if window.kept < EACH {
            window.kept += 1;
            return self.0.journal.queue(record).map(drop);
        }
        if window.left.is_empty() {
            self.end_later(window.since.unwrap_or(now));
        }
        *window.left.entry(code).or_default() += 1;
        Ok(())
    }

    /// Records what was counted until now.
    ///
    /// # Errors
    ///
    /// Records cannot be kept.
    pub fn settle(&self) -> Result<(), Unavailable> {
        self.0.tell(&mut self.0.window().left)
    }

    /// What is counted is told at the end of its window, even where nothing happens any more.
    fn end_later(&self, since: Instant) {
        let inner = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            sleep_until(since + WINDOW).await;
            if let Some(inner) = inner.upgrade()
                && let Err(error) = Self(inner).settle()
            {
                tracing::error!(%error, "how often something was refused has no record");
            }
        });
    }
}

impl Inner {
    fn window(&self) -> MutexGuard<'_, Window> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What has no record yet stays counted.
    fn tell(&self, left: &mut BTreeMap<Code, u64>) -> Result<(), Unavailable> {
        while let Some(counted) = left.first_entry() {
            let mut record = Record::new(self.clock.now(), Kind::Request, Phase::Decision)
                .ended(OutcomeKind::Refused, Some(*counted.key()));
            record.times = Some(*counted.get());
            self.journal.queue(record).map(drop)?;
            counted.remove();
        }
        Ok(())
    }
}

impl fmt::Debug for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Tally").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{audit::Options, clock::SystemClock, telemetry::Metrics};

    #[tokio::test(start_paused = true)]
    async fn a_minute_has_a_bounded_number_of_records_and_none_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(SystemClock);
        let audit = folder.path().join("audit");
        let options = Options::new(audit.clone());
        let journal = Journal::open(options, clock.clone(), &Metrics::default()).unwrap();
        let tally = Tally::new(journal.clone(), clock);
        let refuse = |code, times| {
            for _ in 0..times {
                let record = Record::new(SystemClock.now(), Kind::Request, Phase::Decision)
                    .ended(OutcomeKind::Refused, Some(code));
                tally.queue(code, record).unwrap();
            }
        };
        refuse(Code::WebNotFound, 1_000);
        refuse(Code::WebForm, 3);
        tokio::time::sleep(Duration::from_secs(61)).await;
        refuse(Code::WebForm, 61);
        tally.settle().unwrap();
        tally.settle().unwrap();
        journal.close().await.unwrap();

        let mut lines = Vec::new();
        for file in std::fs::read_dir(audit).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|end| end == "jsonl") {
                let text = std::fs::read_to_string(path).unwrap();
                lines.extend(text.lines().map(str::to_owned));
            }
        }
        let each = |code: &str| {
            let of = |line: &&String| line.contains(code) && !line.contains("\"times\"");
            lines.iter().filter(of).count()
        };
        assert_eq!((each("web.not_found"), each("web.form")), (60, 60));
        let told: Vec<_> = lines
            .iter()
            .filter(|line| line.contains("\"times\""))
            .collect();
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(
            told[0].contains("\"code\":\"web.not_found\"") && told[0].contains("\"times\":940")
        );
        assert!(told[1].contains("\"code\":\"web.form\"") && told[1].contains("\"times\":3"));
        assert!(told[2].contains("\"code\":\"web.form\"") && told[2].contains("\"times\":1"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_recorded_stays_counted() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(SystemClock);
        let options = Options::new(folder.path().join("audit"));
        let journal = Journal::open(options, clock.clone(), &Metrics::default()).unwrap();
        let tally = Tally::new(journal.clone(), clock);
        let refuse = || {
            let record = Record::new(SystemClock.now(), Kind::Request, Phase::Decision)
                .ended(OutcomeKind::Refused, Some(Code::WebForm));
            tally.queue(Code::WebForm, record)
        };
        for _ in 0..63 {
            refuse().unwrap();
        }
        journal.close().await.unwrap();
        assert!(tally.settle().is_err());
        tokio::time::sleep(Duration::from_secs(61)).await;
        assert!(refuse().is_err(), "a new minute begins with what is left");
        let left = tally.0.window().left.clone();
        assert_eq!(left, BTreeMap::from([(Code::WebForm, 3)]));
    }
}
