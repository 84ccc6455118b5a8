//! The thread that uses the database, and the bounded queue before it.

use std::{
    io,
    sync::{
        Arc,
        mpsc::{self, Receiver, SyncSender},
    },
    thread::{self, JoinHandle},
};

use tokio::{sync::oneshot, time::Instant};

use super::{
    Unavailable,
    database::Database,
    pins::{self, Failure},
};
use crate::{
    catalog::{LedgerError, Pinned, ServerKey},
    telemetry::Metrics,
};

/// What may wait; more is refused at once.
const QUEUE: usize = 64;

/// Something asked of the database. Where nobody waits for the answer any more it is done all the same.
pub(super) enum Job {
    /// What is pinned of a server.
    Read {
        server: ServerKey,
        answer: oneshot::Sender<Result<Option<Pinned>, LedgerError>>,
    },
    /// Another state in the place of `expected`.
    Replace {
        server: ServerKey,
        expected: Option<u64>,
        pinned: Pinned,
        answer: oneshot::Sender<Result<bool, LedgerError>>,
    },
    /// The end; the answer is that there will be none.
    Close { answer: oneshot::Sender<()> },
}

/// The way to the thread, which ends when this is dropped.
pub(super) struct Worker {
    /// `None` only while it is dropped.
    jobs: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
    metrics: Arc<Metrics>,
}

impl Worker {
    pub(super) fn start(database: Database, metrics: Arc<Metrics>) -> io::Result<Self> {
        let (jobs, queue) = mpsc::sync_channel(QUEUE);
        let thread = thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || work(database, &queue))?;
        Ok(Self {
            jobs: Some(jobs),
            thread: Some(thread),
            metrics,
        })
    }

    /// Has a job done and waits for its answer.
    pub(super) async fn ask<T>(
        &self,
        operation: &'static str,
        server: &ServerKey,
        job: impl FnOnce(oneshot::Sender<Result<T, LedgerError>>) -> Job,
    ) -> Result<T, LedgerError> {
        let started = Instant::now();
        let (answer, answered) = oneshot::channel();
        let result = match self.submit(job(answer)) {
            Ok(()) => answered
                .await
                .unwrap_or_else(|_| Err(unavailable(server, Unavailable::Closed))),
            Err(why) => Err(unavailable(server, why)),
        };
        let code = result.as_ref().err().map(|error| error.code().as_str());
        self.metrics.stored(operation, code, started.elapsed());
        result
    }

    /// Waits for what was asked, and closes the database. What is asked after that is refused.
    pub(super) async fn close(&self) {
        let (answer, closed) = oneshot::channel();
        if self.submit(Job::Close { answer }).is_ok() {
            // A thread that has ended has closed it too.
            drop(closed.await);
        }
    }

    fn submit(&self, job: Job) -> Result<(), Unavailable> {
        let jobs = self.jobs.as_ref().ok_or(Unavailable::Closed)?;
        jobs.try_send(job).map_err(|error| match error {
            mpsc::TrySendError::Full(_) => Unavailable::Full,
            mpsc::TrySendError::Disconnected(_) => Unavailable::Closed,
        })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // One that panicked has said so on standard error.
            drop(thread.join());
        }
    }
}

fn work(mut database: Database, queue: &Receiver<Job>) {
    for job in queue {
        // Who asked may be gone.
        match job {
            Job::Read { server, answer } => {
                drop(answer.send(read(&mut database, &server)));
            }
            Job::Replace {
                server,
                expected,
                pinned,
                answer,
            } => drop(answer.send(replace(&mut database, &server, expected, &pinned))),
            Job::Close { answer } => {
                drop(database);
                drop(answer);
                return;
            }
        }
        database.rest();
    }
}

fn read(database: &mut Database, server: &ServerKey) -> Result<Option<Pinned>, LedgerError> {
    stands(database, server)?;
    pins::read(&mut database.connection, &database.mac, server)
        .map_err(|failure| failed(server, failure))
}

fn replace(
    database: &mut Database,
    server: &ServerKey,
    expected: Option<u64>,
    pinned: &Pinned,
) -> Result<bool, LedgerError> {
    stands(database, server)?;
    let Database {
        connection, mac, ..
    } = database;
    pins::replace(connection, mac, server, expected, pinned)
        .map_err(|failure| failed(server, failure))
}

/// SQLite goes on with a file that was moved away, where nobody would find again what it writes.
fn stands(database: &Database, server: &ServerKey) -> Result<(), LedgerError> {
    let file = &database.file;
    if file.stands() {
        return Ok(());
    }
    Err(unavailable(server, Unavailable::Moved(file.path.clone())))
}

fn failed(server: &ServerKey, failure: Failure) -> LedgerError {
    match failure {
        Failure::Forged => LedgerError::Forged {
            server: server.name.clone(),
        },
        Failure::Sqlite(error) => unavailable(server, Unavailable::Sqlite(error)),
    }
}

fn unavailable(server: &ServerKey, why: Unavailable) -> LedgerError {
    LedgerError::Unavailable {
        server: server.name.clone(),
        source: Box::new(why),
    }
}
