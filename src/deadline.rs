//! Owns: how long a call may take: one end for the whole, bounds for its phases; and the alarm that tells of an end.
//! Imports: no room.
//! Never: extends an end that was set.
//! Fails as: nothing; the room that waits names what it waited for.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep_until};

/// The longest any tool or OAuth leg may take, whatever a file says (requirement E3).
pub const CEILING: Duration = Duration::from_secs(120);

/// The end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Instant);

impl Deadline {
    /// The end `limit` from now, never past [`CEILING`].
    pub fn after(limit: Duration) -> Self {
        Self(Instant::now() + limit.min(CEILING))
    }

    /// The end of a stream that no single call owns: a day, since it may well be silent for hours.
    pub fn of_open_stream() -> Self {
        Self(Instant::now() + Duration::from_secs(24 * 60 * 60))
    }

    /// The instant of the end.
    pub fn instant(self) -> Instant {
        self.0
    }

    /// The sooner of this end and `limit` from now: the bound of one phase.
    pub fn phase(self, limit: Duration) -> Instant {
        self.phase_from(Instant::now(), limit)
    }

    /// The same for a phase that begins at `begin`.
    pub fn phase_from(self, begin: Instant, limit: Duration) -> Instant {
        self.0.min(begin + limit)
    }

    /// Whether the end has come.
    pub fn passed(self) -> bool {
        Instant::now() >= self.0
    }
}

/// Tells when an end has come, and is cheap to put off: its timer is only ever moved to an earlier end, and a later one is
/// found when it fires. Ends that never come, which are nearly all, cost no timer then.
#[derive(Debug, Default)]
pub struct Alarm {
    end: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Alarm {
    /// Waits for `end` from now on; `None` waits for nothing.
    pub fn set(&mut self, end: Option<Instant>) {
        self.end = end;
    }

    /// Ready once the end has come.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(end) = self.end else {
            return Poll::Pending;
        };
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(end)));
        if end < timer.deadline() {
            timer.as_mut().reset(end);
        }
        while timer.as_mut().poll(context).is_ready() {
            if Instant::now() >= end {
                return Poll::Ready(());
            }
            timer.as_mut().reset(end);
        }
        Poll::Pending
    }
}

/// What `future` gives, or `None` where `end` comes first. Of what is ready at once, as nearly everything is, it makes no
/// timer. It is taken pinned: by value it would be held twice.
pub async fn until<F: Future>(end: Instant, mut future: Pin<&mut F>) -> Option<F::Output> {
    let mut alarm = Alarm::default();
    alarm.set(Some(end));
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => alarm.poll(context).map(|()| None),
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::{future::pending, pin::pin};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_alarm_goes_off_at_the_end_that_was_set_last() {
        let begin = Instant::now();
        let after = |seconds| Some(begin + Duration::from_secs(seconds));
        let mut alarm = Alarm::default();
        let mut rings = async |end| {
            alarm.set(end);
            let patience = Duration::from_secs(60);
            let rang = tokio::time::timeout(patience, poll_fn(|context| alarm.poll(context))).await;
            rang.ok().map(|()| begin.elapsed().as_secs())
        };
        assert_eq!(rings(after(5)).await, Some(5));
        assert_eq!(rings(after(30)).await, Some(30), "put off");
        assert_eq!(rings(after(30)).await, Some(30), "over already");
        assert_eq!(rings(None).await, None);
        assert_eq!(rings(after(100)).await, Some(100));
    }

    #[tokio::test(start_paused = true)]
    async fn an_alarm_is_moved_to_an_earlier_end() {
        let begin = Instant::now();
        let mut alarm = Alarm::default();
        for (end, waited) in [(50, 1), (40, 2), (3, 3)] {
            alarm.set(Some(begin + Duration::from_secs(end)));
            let patience = begin + Duration::from_secs(waited);
            let rang = tokio::time::timeout_at(patience, poll_fn(|context| alarm.poll(context)));
            assert_eq!(rang.await.is_ok(), end == 3);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_does_not_come_until_its_end_is_given_up() {
        let begin = Instant::now();
        let end = begin + Duration::from_secs(7);
        assert_eq!(until(end, pin!(async { 5 })).await, Some(5));
        assert_eq!(until(end, pin!(pending::<()>())).await, None);
        assert_eq!(begin.elapsed().as_secs(), 7);
        assert_eq!(
            until(end, pin!(async { 5 })).await,
            Some(5),
            "as late as that"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_phase_never_outlives_the_call() {
        let deadline = Deadline::after(Duration::from_secs(10));
        assert_eq!(deadline.phase(Duration::from_secs(30)), deadline.instant());
        assert!(deadline.phase(Duration::from_secs(1)) < deadline.instant());
    }

    #[tokio::test(start_paused = true)]
    async fn no_file_moves_the_ceiling() {
        let deadline = Deadline::after(Duration::from_secs(100_000));
        assert_eq!(deadline.instant(), Instant::now() + CEILING);
        tokio::time::advance(CEILING).await;
        assert!(deadline.passed());
    }
}
