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

use super::{Unavailable, database::Database, failure::Failure};
use crate::{refusal::Code, telemetry::Metrics};

/// What may wait; more is refused at once.
const QUEUE: usize = 64;

/// Something asked of the database. Where nobody waits for the answer any more it is done all the same.
enum Job {
    /// A use of it, which sends its own answer.
    Use(Box<dyn FnOnce(&mut Database) + Send>),
    /// The end; the answer is that there will be none.
    Close(oneshot::Sender<()>),
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

    /// Has `job` done on the thread and waits for its answer. It is counted as `operation`, and a failure by the `code`
    /// of the error that `failed` makes of it.
    pub(super) async fn ask<T: Send + 'static, E>(
        &self,
        operation: &'static str,
        job: impl FnOnce(&mut Database) -> Result<T, Failure> + Send + 'static,
        failed: impl FnOnce(Failure) -> E,
        code: fn(&E) -> Code,
    ) -> Result<T, E> {
        let started = Instant::now();
        let (answer, answered) = oneshot::channel();
        let run = move |database: &mut Database| {
            let result = stands(database).and_then(|()| job(database));
            // Who asked may be gone.
            drop(answer.send(result));
        };
        let result = match self.submit(Job::Use(Box::new(run))) {
            Ok(()) => answered
                .await
                .unwrap_or_else(|_| Err(Unavailable::Closed.into())),
            Err(why) => Err(why.into()),
        };
        let result = result.map_err(failed);
        let refused = result.as_ref().err().map(|error| code(error).as_str());
        self.metrics.stored(operation, refused, started.elapsed());
        result
    }

    /// Waits for what was asked, and closes the database. What is asked after that is refused.
    pub(super) async fn close(&self) {
        let (answer, closed) = oneshot::channel();
        if self.submit(Job::Close(answer)).is_ok() {
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
        match job {
            Job::Use(run) => run(&mut database),
            Job::Close(answer) => {
                drop(database);
                drop(answer);
                return;
            }
        }
        database.rest();
    }
}

/// SQLite goes on with a file that was moved away, where nobody would find again what it writes.
fn stands(database: &Database) -> Result<(), Failure> {
    let file = &database.file;
    if file.stands() {
        return Ok(());
    }
    Err(Unavailable::Moved(file.path.clone()).into())
}
