//! Results that were cut, kept for a while so that their callers can read on.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::Instant;

use super::{Error, shape::Form};
use crate::{
    id,
    memory::{FREE, Memory, Reservation},
    subject::Subject,
};

/// How long a result is kept.
pub const LIFE: Duration = Duration::from_secs(10 * 60);
/// Bytes of all results together.
const IN_ALL: usize = 64 << 20;
/// Results at most: callers may be many, and each of them is looked for among all.
const ALL: usize = 4_096;
/// Results of one caller at most, and their bytes.
const PER_CALLER: usize = 16;
const BYTES_PER_CALLER: usize = 16 << 20;

/// The results that can be read on; the oldest go first.
#[derive(Debug)]
pub struct Kept {
    memory: Memory,
    /// Oldest first.
    held: Mutex<VecDeque<Arc<Held>>>,
}

/// A result as its server wrote it. It shows nothing of itself: it may hold secrets.
pub struct Held {
    handle: String,
    subject: Arc<Subject>,
    until: Instant,
    /// The server that it is of.
    pub server: Arc<str>,
    /// What it is a result of.
    pub form: Form,
    /// Bytes of a result that reach the caller at most.
    pub max: usize,
    text: Bytes,
}

impl std::fmt::Debug for Held {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let server = &self.server;
        out.debug_struct("Held")
            .field("server", server)
            .finish_non_exhaustive()
    }
}

impl Held {
    /// The JSON text.
    pub fn text(&self) -> &str {
        // It was made of a `str`.
        std::str::from_utf8(&self.text).unwrap_or_default()
    }

    /// Whose it is. The conversation does not count: Tollgate's own server is another one's.
    fn is_of(&self, subject: &Subject) -> bool {
        let own = &self.subject;
        own.tenant == subject.tenant
            && own.agent == subject.agent
            && own.user == subject.user
            && own.evidence == subject.evidence
    }
}

/// What a result is kept with.
pub struct Origin<'a> {
    /// Who may read on.
    pub subject: &'a Arc<Subject>,
    /// The server that it is of.
    pub server: &'a Arc<str>,
    /// What it is a result of.
    pub form: Form,
    /// Bytes of a result that reach the caller at most.
    pub max: usize,
}

impl Default for Kept {
    fn default() -> Self {
        Self {
            memory: Memory::new(IN_ALL),
            held: Mutex::default(),
        }
    }
}

impl Kept {
    /// Keeps a copy of `result`, exactly its size, and returns the handle that leads to it; `None` for one that is too
    /// large. What it came in is let go of: those bytes count as an answer on its way, and may be part of far more.
    pub fn put(&self, origin: &Origin<'_>, result: &str) -> Option<String> {
        if result.len() > BYTES_PER_CALLER {
            return None;
        }
        let mut held = self.lock();
        make_room(&mut held, origin.subject, result.len());
        if held.len() >= ALL {
            held.pop_front();
        }
        let memory = self.reserve(&mut held, result.len())?;
        let handle = id::hex(&id::random::<16>());
        held.push_back(Arc::new(Held {
            handle: handle.clone(),
            subject: origin.subject.clone(),
            until: Instant::now() + LIFE,
            server: origin.server.clone(),
            form: origin.form,
            max: origin.max,
            text: memory.attach(Bytes::copy_from_slice(result.as_bytes())),
        }));
        Some(handle)
    }

    /// The result that `handle` leads this caller to.
    ///
    /// # Errors
    ///
    /// [`Error::HandleUnknown`]: there is none, it is kept no longer, or it is another caller's.
    pub fn find(&self, subject: &Subject, handle: &str) -> Result<Arc<Held>, Error> {
        let mut held = self.lock();
        expire(&mut held);
        let found = held.iter().find(|held| held.handle == handle);
        let found = found.filter(|held| held.is_of(subject));
        found.cloned().ok_or(Error::HandleUnknown)
    }

    /// Lets go of what is kept long enough.
    pub fn sweep(&self) {
        expire(&mut self.lock());
    }

    /// Memory for so many bytes; the oldest results make room.
    fn reserve(&self, held: &mut VecDeque<Arc<Held>>, bytes: usize) -> Option<Reservation> {
        loop {
            let mut memory = Reservation::default();
            // All of it counts here, where nothing ends by itself.
            match memory.grow(bytes + FREE, &self.memory) {
                Ok(()) => return Some(memory),
                Err(_full) => held.pop_front()?,
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Held>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn expire(held: &mut VecDeque<Arc<Held>>) {
    let now = Instant::now();
    while held.front().is_some_and(|oldest| oldest.until <= now) {
        held.pop_front();
    }
}

/// Lets go of the caller's oldest results until one more of so many bytes is within its share.
fn make_room(held: &mut VecDeque<Arc<Held>>, subject: &Subject, bytes: usize) {
    expire(held);
    let own = |held: &VecDeque<Arc<Held>>| {
        let own = held.iter().filter(|held| held.is_of(subject));
        own.fold((0, bytes), |(count, sum), held| {
            (count + 1, sum + held.text.len())
        })
    };
    let (mut count, mut sum) = own(held);
    while count >= PER_CALLER || sum > BYTES_PER_CALLER {
        let Some(oldest) = held.iter().position(|held| held.is_of(subject)) else {
            return;
        };
        let gone = held.remove(oldest);
        (count, sum) = (count - 1, sum - gone.map_or(0, |gone| gone.text.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::tests::subject;

    fn origin<'a>(subject: &'a Arc<Subject>, server: &'a Arc<str>) -> Origin<'a> {
        Origin {
            subject,
            server,
            form: Form::Tool,
            max: 1024,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn only_who_got_it_reads_on_and_not_for_ever() {
        let kept = Kept::default();
        let (ann, server) = (Arc::new(subject("ann")), "s".into());
        let handle = kept.put(&origin(&ann, &server), "{}").unwrap();
        assert_eq!(handle.len(), 32);
        assert_eq!(kept.find(&ann, &handle).unwrap().text(), "{}");
        assert_eq!(kept.find(&ann, "").unwrap_err(), Error::HandleUnknown);
        let mut others = vec![subject("bob"); 4];
        others[1] = Subject {
            tenant: "other".into(),
            ..subject("ann")
        };
        others[2] = Subject {
            agent: "other".into(),
            ..subject("ann")
        };
        others[3] = Subject {
            evidence: "other".into(),
            ..subject("ann")
        };
        for other in others {
            assert_eq!(
                kept.find(&other, &handle).unwrap_err(),
                Error::HandleUnknown
            );
        }
        let elsewhere = Subject {
            conversation: Some("c".into()),
            ..subject("ann")
        };
        assert!(kept.find(&elsewhere, &handle).is_ok());
        tokio::time::advance(LIFE - Duration::from_secs(1)).await;
        assert!(kept.find(&ann, &handle).is_ok());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(kept.find(&ann, &handle).unwrap_err(), Error::HandleUnknown);
    }

    #[tokio::test]
    async fn a_caller_and_all_together_have_so_much() {
        let kept = Kept::default();
        let server = "s".into();
        let ann = Arc::new(subject("ann"));
        let put =
            |who: &Arc<Subject>, bytes: usize| kept.put(&origin(who, &server), &"x".repeat(bytes));
        let first = put(&ann, 1).unwrap();
        let all: Vec<_> = (0..16).map(|_| put(&ann, 1).unwrap()).collect();
        assert!(kept.find(&ann, &first).is_err());
        assert!(all.iter().all(|handle| kept.find(&ann, handle).is_ok()));
        let large = put(&ann, 16 << 20).unwrap();
        assert!(kept.find(&ann, &all[15]).is_err());
        assert_eq!(put(&ann, (16 << 20) + 1), None);
        for other in ["b", "c", "d"] {
            put(&Arc::new(subject(other)), 16 << 20).unwrap();
        }
        assert!(kept.find(&ann, &large).is_ok());
        put(&Arc::new(subject("e")), 1).unwrap();
        assert!(kept.find(&ann, &large).is_err(), "the oldest goes");
        assert_eq!(kept.lock().len(), 4);
    }

    #[tokio::test]
    async fn however_many_callers_there_are_results_are_so_many() {
        let kept = Kept::default();
        let server = "s".into();
        let first = Arc::new(subject("0"));
        let handle = kept.put(&origin(&first, &server), "{}").unwrap();
        for caller in 1..ALL {
            let caller = Arc::new(subject(&caller.to_string()));
            kept.put(&origin(&caller, &server), "{}").unwrap();
        }
        assert!(kept.find(&first, &handle).is_ok());
        kept.put(&origin(&Arc::new(subject("x")), &server), "{}");
        assert_eq!(
            kept.find(&first, &handle).unwrap_err(),
            Error::HandleUnknown
        );
        assert_eq!(kept.lock().len(), ALL);
    }
}
