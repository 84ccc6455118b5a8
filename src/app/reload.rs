//! Taking up changed files while calls run: the whole folder or nothing, and never a step back to none.
//!
//! Changes are found by reading, not by being told: a ConfigMap changes by swapping a link, which file notification
//! misses easily.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwap;
use tokio::time::{MissedTickBehavior, interval};

use super::load::{Attempt, Loaded, Loader};
use crate::table::Fault;

/// How often the folder is read.
pub const INTERVAL: Duration = Duration::from_secs(2);

/// How often a folder that changes while it is read is read again.
const READINGS: usize = 10;

/// What came of a reload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Something else holds from now on.
    Changed {
        /// The policy's generation, which rises only where the policy itself changed.
        generation: u64,
        /// Settings that changed in the files and wait for a restart.
        kept: Vec<&'static str>,
    },
    /// The files say what holds already.
    Unchanged {
        /// Settings that changed in the files and wait for a restart.
        kept: Vec<&'static str>,
    },
    /// The files have faults; what held before goes on.
    Rejected {
        /// All of them, in the order of files and lines.
        faults: Vec<Fault>,
    },
}

/// Hears of every attempt but those that found nothing new, and of what holds after it.
pub trait Report: Send + Sync {
    /// Takes it to records, logs, metrics, and to whoever works by what holds.
    fn tell(&self, outcome: &Outcome, holds: &Loaded);
}

impl<F: Fn(&Outcome, &Loaded) + Send + Sync> Report for F {
    fn tell(&self, outcome: &Outcome, holds: &Loaded) {
        self(outcome, holds);
    }
}

/// The files of a running process.
pub struct Reloader {
    loader: Loader,
    current: ArcSwap<Loaded>,
    /// Held while files are read and swapped in, so that of two reloads the one that read later wins.
    seen: Mutex<Seen>,
    report: Box<dyn Report>,
}

/// What the last attempt read, whether or not it was taken up.
struct Seen {
    digest: [u8; 32],
    references: Vec<String>,
    /// A changed digest that has not been seen twice yet.
    settling: Option<[u8; 32]>,
}

impl Reloader {
    /// Loads for the first time. `report` writes the record and the log line, sets the gauge, and passes on what
    /// holds now.
    ///
    /// # Errors
    ///
    /// Every fault of the files.
    pub fn start(loader: Loader, report: impl Report + 'static) -> Result<Self, Vec<Fault>> {
        let attempt = loader.attempt(None);
        let loaded = attempt.result?;
        Ok(Self {
            loader,
            current: ArcSwap::from_pointee(loaded),
            seen: Mutex::new(Seen {
                digest: attempt.digest,
                references: attempt.references,
                settling: None,
            }),
            report: Box::new(report),
        })
    }

    /// What holds now. Load it once for each request, so that all of it is judged by one policy.
    pub fn current_full(&self) -> Arc<Loaded> {
        self.current.load_full()
    }

    /// The loader.
    pub fn loader(&self) -> &Loader {
        &self.loader
    }

    /// Reads everything again because somebody said so (SIGHUP, the control socket). Blocks on the disk.
    pub fn reload(&self) -> Outcome {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        self.take_up(&mut seen)
    }

    /// Looks whether the files changed, and takes them up once they have stayed the same for two looks in a row: a file
    /// that is still being written may look complete. Blocks on the disk.
    pub fn poll(&self) -> Option<Outcome> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let digest = self.loader.digest(&seen.references);
        if digest == seen.digest {
            seen.settling = None;
            return None;
        }
        if seen.settling != Some(digest) {
            seen.settling = Some(digest);
            return None;
        }
        Some(self.take_up(&mut seen))
    }

    /// Polls for as long as it is itself polled.
    pub async fn watch(self: Arc<Self>) {
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let reloader = self.clone();
            // A look that panicked has said so; the next one is as good as ever.
            let _ = tokio::task::spawn_blocking(move || reloader.poll()).await;
        }
    }

    /// An attempt whose files were the same before and after, so that it does not mix two states of the folder.
    fn read_steadily(&self, running: &Loaded) -> Attempt {
        let mut attempt = self.loader.attempt(Some(running));
        for _ in 0..READINGS {
            if self.loader.digest(&attempt.references) == attempt.digest {
                break;
            }
            attempt = self.loader.attempt(Some(running));
        }
        attempt
    }

    fn take_up(&self, seen: &mut Seen) -> Outcome {
        let running = self.current.load_full();
        let Attempt {
            result,
            digest,
            kept,
            references,
        } = self.read_steadily(&running);
        *seen = Seen {
            digest,
            references,
            settling: None,
        };
        let outcome = match result {
            Err(faults) => Outcome::Rejected { faults },
            Ok(loaded) => match successor(&running, loaded) {
                None => Outcome::Unchanged { kept },
                Some(next) => {
                    let generation = next.policy.generation;
                    self.current.store(Arc::new(next));
                    Outcome::Changed { generation, kept }
                }
            },
        };
        self.report.tell(&outcome, &self.current.load());
        outcome
    }
}

/// What follows on `running`, sharing with it whatever stayed the same; `None` if everything did.
fn successor(running: &Loaded, mut next: Loaded) -> Option<Loaded> {
    let same_settings = next.settings == running.settings;
    let same_tls = next.tls == running.tls;
    let policy = Arc::get_mut(&mut next.policy)?;
    policy.generation = running.policy.generation;
    let same_policy = *policy == *running.policy;
    if !same_policy {
        policy.generation += 1;
    } else {
        next.policy = running.policy.clone();
    }
    (!(same_settings && same_tls && same_policy)).then_some(next)
}

#[cfg(test)]
mod tests;
