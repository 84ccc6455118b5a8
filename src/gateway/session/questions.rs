//! What a server asks of the client in a session: under an id of our own on its way there, and of the server's on its
//! way back, so that an answer can only reach who asked.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::tell;
use crate::{
    address::{Scheme, Target},
    deadline::Deadline,
    gateway::{Asked, Entry, Finding, Gateway, limits::lanes::Paused},
    mcp::{Params, Question, capabilities::Offer, envelope::splice},
    policy::{Permit, Relay},
    refusal::Refusal,
};

/// Questions of one session that are open at once at most.
const OPEN: usize = 64;
/// How long a question that belongs to no call keeps its place from others: nothing ends it but its answer, and clients
/// lose some.
const PATIENCE: Duration = Duration::from_secs(10 * 60);

/// The open questions of one session.
#[derive(Default)]
pub(in crate::gateway) struct Questions(Mutex<Open>);

#[derive(Default)]
struct Open {
    last: u64,
    asked: HashMap<u64, Pending>,
}

struct Pending {
    upstream_id: Box<str>,
    question: Question,
    call: Option<u64>,
    since: Instant,
    /// The call runs on once all its questions are answered.
    _paused: Option<Arc<Paused>>,
}

impl Questions {
    /// Takes a question up; `call` is the request on whose stream it came, which is paused until the question is closed.
    /// Returns the id that the client sees, or `None` for a server that asks more than it waits for.
    pub(in crate::gateway) fn put(
        &self,
        question: Question,
        upstream_id: &str,
        call: Option<u64>,
        pause: impl FnOnce() -> Option<Arc<Paused>>,
    ) -> Option<u64> {
        let mut open = self.lock();
        if open.asked.len() >= OPEN {
            open.asked
                .retain(|_, pending| pending.call.is_some() || pending.since.elapsed() < PATIENCE);
        }
        if open.asked.len() >= OPEN {
            return None;
        }
        open.last += 1;
        let id = open.last;
        let pending = Pending {
            upstream_id: upstream_id.into(),
            question,
            call,
            since: Instant::now(),
            _paused: pause(),
        };
        open.asked.insert(id, pending);
        Some(id)
    }

    /// The server takes a question back; returns the id that the client knows it by.
    pub(in crate::gateway) fn take_back(&self, upstream_id: &str) -> Option<u64> {
        let mut open = self.lock();
        let mut asked = open.asked.iter();
        let (id, _) = asked.find(|(_, pending)| &*pending.upstream_id == upstream_id)?;
        let id = *id;
        open.asked.remove(&id);
        Some(id)
    }

    /// The request is over: nobody waits for answers to what it asked.
    pub(in crate::gateway) fn forget(&self, call: u64) {
        let mut open = self.lock();
        if !open.asked.is_empty() {
            open.asked.retain(|_, pending| pending.call != Some(call));
        }
    }

    fn answered(&self, id: &str) -> Option<Pending> {
        let id = id.parse().ok()?;
        self.lock().asked.remove(&id)
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Passes the client's answer on to the server that asked, once. What nobody asked, or nobody waits for any more, goes
/// nowhere: both can happen to a well-behaved client.
pub(in crate::gateway) async fn answer(
    gateway: &Gateway,
    asked: &Asked<'_>,
    permit: &Permit,
    entry: &mut Entry,
) -> Result<Finding, Refusal> {
    let (Some(session), Some(id)) = (&asked.session, asked.message.id) else {
        return Ok(Finding::Accepted);
    };
    let Some(pending) = session.questions.answered(id.as_str()) else {
        return Ok(Finding::Accepted);
    };
    entry.answers(pending.question);
    entry.admit_read()?;
    let edit = (id.part().range(), pending.upstream_id.as_bytes());
    let body = splice(asked.body, &[edit]);
    let deadline = Deadline::after(tell::TELLING);
    gateway
        .upstream
        .tell(permit, &session.upstream, body.into(), deadline)
        .await?;
    Ok(Finding::Accepted)
}

/// Whether the operator lets this question through.
pub(in crate::gateway) fn relayed(relay: Relay, question: Question) -> bool {
    match question {
        Question::Elicit => relay.elicitation,
        Question::Sample => relay.sampling,
        Question::Roots => relay.roots,
    }
}

/// Whether a server may ask this: only what the client offers, and no page but one that a browser opens safely. The
/// error says why not.
pub(in crate::gateway) fn admit(
    offer: &Offer,
    question: Question,
    params: Option<&Params<'_>>,
) -> Result<(), &'static str> {
    let mode = params.and_then(|params| params.mode?.string());
    let wants_page = mode.as_deref() == Some("url");
    match (question, params) {
        (Question::Elicit, Some(params)) if wants_page => admit_page(offer, params),
        _ if offer.admits(question, wants_page) => Ok(()),
        _ => Err(NOT_OFFERED),
    }
}

const NOT_OFFERED: &str = "this client does not offer that";

/// Whether a server may have people open this page, whatever mode it names.
pub(in crate::gateway) fn admit_page(
    offer: &Offer,
    params: &Params<'_>,
) -> Result<(), &'static str> {
    if !offer.admits(Question::Elicit, true) {
        return Err(NOT_OFFERED);
    }
    let url = params.url.and_then(|url| url.string());
    match url.map(|url| Target::from_wire(&url)) {
        Some(Ok(target)) if is_page(&target) => Ok(()),
        _ => Err("`url` is not an https URL"),
    }
}

/// People are only sent to https, and to http on their own machine.
fn is_page(target: &Target) -> bool {
    match target.scheme() {
        Scheme::Https => true,
        Scheme::Http => {
            let host = target.host().to_string();
            ["localhost", "127.0.0.1", "::1", "[::1]"].contains(&&*host)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(
        questions: &Questions,
        question: Question,
        upstream_id: &str,
        call: Option<u64>,
    ) -> Option<u64> {
        questions.put(question, upstream_id, call, || None)
    }

    #[test]
    fn an_answer_serves_once_and_only_who_asked() {
        let questions = Questions::default();
        let first = put(&questions, Question::Elicit, "\"a\"", Some(7)).unwrap();
        let second = put(&questions, Question::Sample, "1", Some(8)).unwrap();
        assert_ne!(first, second);
        let pending = questions.answered(&first.to_string()).unwrap();
        assert_eq!(
            (&*pending.upstream_id, pending.question),
            ("\"a\"", Question::Elicit)
        );
        assert!(questions.answered(&first.to_string()).is_none());
        assert!(questions.answered(&format!("\"{second}\"")).is_none());
        questions.forget(8);
        assert!(questions.answered(&second.to_string()).is_none());
    }

    #[test]
    fn a_question_taken_back_is_open_no_more() {
        let questions = Questions::default();
        let id = put(&questions, Question::Roots, "5", None).unwrap();
        assert_eq!(questions.take_back("6"), None);
        assert_eq!(questions.take_back("5"), Some(id));
        assert!(questions.answered(&id.to_string()).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn questions_that_nobody_answers_make_room_in_the_end() {
        let questions = Questions::default();
        let first = put(&questions, Question::Roots, "1", None).unwrap();
        for _ in 1..OPEN {
            assert!(put(&questions, Question::Roots, "5", Some(1)).is_some());
        }
        tokio::time::advance(PATIENCE - Duration::from_secs(1)).await;
        assert!(put(&questions, Question::Roots, "5", None).is_none());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(put(&questions, Question::Roots, "5", None).is_some());
        assert!(questions.answered(&first.to_string()).is_none());
        assert!(put(&questions, Question::Roots, "5", None).is_none());
    }

    #[test]
    fn a_server_that_floods_is_not_heard() {
        let questions = Questions::default();
        for _ in 0..OPEN {
            assert!(put(&questions, Question::Roots, "5", Some(1)).is_some());
        }
        assert!(put(&questions, Question::Roots, "5", Some(1)).is_none());
        questions.forget(1);
        assert!(put(&questions, Question::Roots, "5", Some(1)).is_some());
    }
}
