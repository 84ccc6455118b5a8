//! Checks that take long, on threads of their own: a few at once, so that they never take all cores from the calls.

use std::sync::Arc;

use tokio::{
    sync::Semaphore,
    time::{Instant, timeout_at},
};

use crate::deadline::Deadline;

/// Checks off the runtime at once.
const AT_ONCE: usize = 2;

/// Where long checks run.
#[derive(Debug)]
pub(super) struct Aside {
    places: Arc<Semaphore>,
}

impl Default for Aside {
    fn default() -> Self {
        Self {
            places: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }
}

impl Aside {
    /// Runs `work` once there is a place, on what `input` makes then; `None` where `deadline` came first. Work that was
    /// begun goes on to its end and keeps its place until then.
    pub(super) async fn run<I, O>(
        &self,
        input: impl FnOnce() -> I,
        work: impl FnOnce(I) -> O + Send + 'static,
        deadline: Deadline,
    ) -> Option<O>
    where
        I: Send + 'static,
        O: Send + 'static,
    {
        let end: Instant = deadline.instant();
        let place = timeout_at(end, self.places.clone().acquire_owned()).await;
        let place = place.ok()?.ok()?;
        let input = input();
        let working = tokio::task::spawn_blocking(move || {
            let output = work(input);
            drop(place);
            output
        });
        timeout_at(end, working).await.ok()?.ok()
    }
}

#[cfg(test)]
impl Aside {
    /// Leaves no place to others.
    pub(super) async fn take_all(&self) -> impl Drop + use<> {
        let all = u32::try_from(AT_ONCE).expect("few");
        self.places
            .clone()
            .acquire_many_owned(all)
            .await
            .expect("never closed")
    }
}
