//! Wake-ups that find nothing to do: hyper wakes a connection whenever a piece of a request's body is taken, so that it
//! reads the next, and it does so for the last piece too. For a call of usual size that is one poll of everything in three.

use std::{
    cell::Cell,
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};

use bytes::Bytes;
use http_body::{Body, Frame};

thread_local! {
    /// What becomes of wake-ups on this thread.
    static WAKING: Cell<Waking> = const { Cell::new(Waking::Passed) };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waking {
    /// They are passed on.
    Passed,
    /// They are held back, and there was none yet.
    Held,
    /// The same, and there was one.
    Wanted,
}

/// Makes the wakers of one connection.
#[derive(Default)]
pub(super) struct Hush(Option<(Waker, Waker)>);

/// Wakes a task, but for what is held back.
struct Passing(Waker);

impl Wake for Passing {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        match WAKING.get() {
            Waking::Passed => self.0.wake_by_ref(),
            Waking::Held | Waking::Wanted => WAKING.set(Waking::Wanted),
        }
    }
}

impl Hush {
    /// A waker for the same task, from which [`take`] holds back what is in vain.
    pub(super) fn waker(&mut self, task: &Waker) -> &Waker {
        let known = self.0.take().filter(|(known, _)| known.will_wake(task));
        let made = || (task.clone(), Arc::new(Passing(task.clone())).into());
        &self.0.insert(known.unwrap_or_else(made)).1
    }
}

/// The next frame of a request's body; the connection that it comes from is woken only where more is to come.
pub(super) async fn take<B: Body<Data = Bytes> + Unpin>(
    body: &mut B,
) -> Option<Result<Frame<Bytes>, B::Error>> {
    poll_fn(|context| poll(body, context)).await
}

fn poll<B: Body<Data = Bytes> + Unpin>(
    body: &mut B,
    context: &mut Context<'_>,
) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
    let holding = Holding(WAKING.replace(Waking::Held));
    let polled = Pin::new(&mut *body).poll_frame(context);
    let wanted = WAKING.get() == Waking::Wanted;
    drop(holding);
    if wanted && !body.is_end_stream() {
        context.waker().wake_by_ref();
    }
    polled
}

/// Wake-ups are held back until this is dropped, be it by a panic; then it is as it was before.
struct Holding(Waking);

impl Drop for Holding {
    fn drop(&mut self) {
        WAKING.set(self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::atomic::{AtomicUsize, Ordering::Relaxed},
    };

    use super::*;

    /// Pieces, of which the taking of each wakes.
    struct Pieces(usize, Waker);

    impl Body for Pieces {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            self.0 -= 1;
            self.1.wake_by_ref();
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"x")))))
        }

        fn is_end_stream(&self) -> bool {
            self.0 == 0
        }
    }

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn the_last_piece_wakes_nobody() {
        let count = Arc::new(Count::default());
        let task = Waker::from(count.clone());
        let mut hush = Hush::default();
        let waker = hush.waker(&task).clone();
        assert!(hush.waker(&task).will_wake(&waker), "the same task");
        let mut context = Context::from_waker(&task);
        let mut body = Pieces(3, waker.clone());
        for woken in [1, 2, 2] {
            assert!(poll(&mut body, &mut context).is_ready());
            assert_eq!(count.0.load(Relaxed), woken);
        }
        waker.wake_by_ref();
        assert_eq!(count.0.load(Relaxed), 3, "behind it, everything wakes");
    }

    #[test]
    fn other_threads_are_always_heard() {
        struct Elsewhere(Waker);

        impl Body for Elsewhere {
            type Data = Bytes;
            type Error = Infallible;

            fn poll_frame(
                self: Pin<&mut Self>,
                _: &mut Context<'_>,
            ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
                let waker = self.0.clone();
                std::thread::spawn(|| waker.wake()).join().expect("it ends");
                Poll::Ready(None)
            }

            fn is_end_stream(&self) -> bool {
                true
            }
        }

        let count = Arc::new(Count::default());
        let task = Waker::from(count.clone());
        let mut body = Elsewhere(Hush::default().waker(&task).clone());
        assert!(poll(&mut body, &mut Context::from_waker(&task)).is_ready());
        assert_eq!(count.0.load(Relaxed), 1);
    }
}
