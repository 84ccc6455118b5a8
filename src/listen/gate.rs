//! Who woke a connection: hyper polls the answer whenever anything of the connection moves, most often for its own sake.
//! An answer is many futures deep, so it is polled only when it was woken itself.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use futures_util::task::AtomicWaker;

/// Lets polls of one connection's answers through that have a reason.
#[derive(Clone)]
pub(super) struct Gate {
    state: Arc<State>,
    waker: Waker,
}

struct State {
    open: AtomicBool,
    task: AtomicWaker,
}

impl Wake for State {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.open.store(true, Ordering::Release);
        self.task.wake();
    }
}

impl Gate {
    /// A gate of one connection.
    pub(super) fn new() -> Self {
        let state = Arc::new(State {
            open: AtomicBool::new(true),
            task: AtomicWaker::new(),
        });
        Self {
            waker: state.clone().into(),
            state,
        }
    }

    /// The same gate, open for the first poll of another answer.
    pub(super) fn opened(&self) -> Self {
        self.state.open.store(true, Ordering::Relaxed);
        self.clone()
    }

    /// What `poll` gives, or `Pending` while nothing woke it since it was pending last.
    pub(super) fn poll<T>(
        &self,
        context: &Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        // Before the gate is looked at: a wake-up in between is for this task already.
        self.state.task.register(context.waker());
        if !self.state.open.swap(false, Ordering::Acquire) {
            return Poll::Pending;
        }
        let polled = poll(&mut Context::from_waker(&self.waker));
        if polled.is_ready() {
            self.state.open.store(true, Ordering::Relaxed);
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn only_its_own_waker_has_a_pending_future_polled_again() {
        let (gate, polls, inner) = (Gate::new(), Cell::new(0), Cell::new(None));
        let poll = |result: Poll<()>| {
            gate.poll(&Context::from_waker(Waker::noop()), |context| {
                polls.set(polls.get() + 1);
                inner.set(Some(context.waker().clone()));
                result
            })
        };
        assert!(poll(Poll::Pending).is_pending());
        assert!(poll(Poll::Ready(())).is_pending());
        assert_eq!(polls.get(), 1);
        inner.take().expect("it was polled").wake();
        assert!(poll(Poll::Ready(())).is_ready());
        assert!(poll(Poll::Ready(())).is_ready(), "the next one");
        assert_eq!(polls.get(), 3);
    }

    #[test]
    fn a_wake_up_while_it_is_polled_counts() {
        let gate = Gate::new();
        let context = Context::from_waker(Waker::noop());
        let yields = gate.poll(&context, |context| {
            context.waker().wake_by_ref();
            Poll::<()>::Pending
        });
        assert!(yields.is_pending());
        assert!(gate.poll(&context, |_| Poll::Ready(())).is_ready());
    }
}
