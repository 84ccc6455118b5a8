//! One refresh of a connection at a time in this process: whoever comes later waits for the one that flies.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;

use crate::connect::{Error, GrantKey, Inner, RecordsError};

/// Flights at once; further ones are told to come again.
const MAX: usize = 1024;

/// How a flight ended.
#[derive(Clone, Debug)]
pub(in crate::connect) enum Ended {
    /// The row says how it stands now.
    Settled,
    /// Nothing came of it; later something may.
    Later(Arc<str>),
    /// Nothing will come of it until the operator changes something.
    Unusable(Arc<str>),
    /// The database does not work.
    Records(Arc<str>),
}

impl Ended {
    /// What a caller is told; `None` where the row tells.
    pub(in crate::connect) fn error(self, server: &Arc<str>) -> Option<Error> {
        let server = server.clone();
        match self {
            Self::Settled => None,
            Self::Later(what) => Some(Error::Transient {
                server,
                what: what.to_string(),
            }),
            Self::Unusable(what) => Some(Error::Unusable {
                server,
                what: what.to_string(),
            }),
            Self::Records(why) => Some(Error::Records(RecordsError(why.to_string().into()))),
        }
    }
}

impl From<RecordsError> for Ended {
    fn from(error: RecordsError) -> Self {
        Self::Records(error.0.to_string().into())
    }
}

/// What flies.
#[derive(Default)]
pub(in crate::connect) struct Flights(Mutex<HashMap<GrantKey, watch::Receiver<Option<Ended>>>>);

/// Who waits for a flight.
pub(in crate::connect) struct Waiting(watch::Receiver<Option<Ended>>);

impl Waiting {
    /// Its end. One that broke off has changed nothing that the next would not find.
    pub(in crate::connect) async fn ended(mut self) -> Ended {
        let ended = self.0.wait_for(Option::is_some).await;
        let ended = ended.ok().and_then(|ended| ended.clone());
        ended.unwrap_or_else(|| Ended::Later("it broke off".into()))
    }
}

/// Joins the flight of `key`, or has `fly` begin one in a task of its own, which nobody who waits can break off. `None`
/// where nothing new is begun.
pub(super) fn join<F>(
    inner: &Arc<Inner>,
    key: &GrantKey,
    fly: impl FnOnce() -> F,
) -> Option<Waiting>
where
    F: Future<Output = Ended> + Send + 'static,
{
    let mut flights = inner.flights.all();
    if let Some(flight) = flights.get(key) {
        return Some(Waiting(flight.clone()));
    }
    if flights.len() >= MAX || inner.closing.is_cancelled() {
        return None;
    }
    let (tell, told) = watch::channel(None);
    flights.insert(key.clone(), told.clone());
    drop(flights);
    let landing = Landing {
        inner: inner.clone(),
        key: key.clone(),
    };
    let flight = fly();
    let task = async move {
        let ended = flight.await;
        // Whoever comes from now on begins another.
        drop(landing);
        drop(tell.send(Some(ended)));
    };
    inner.tasks.spawn_on(task, &inner.runtime);
    Some(Waiting(told))
}

/// Takes a flight off the list, also where it never began.
struct Landing {
    inner: Arc<Inner>,
    key: GrantKey,
}

impl Drop for Landing {
    fn drop(&mut self) {
        self.inner.flights.all().remove(&self.key);
    }
}

impl Flights {
    fn all(&self) -> MutexGuard<'_, HashMap<GrantKey, watch::Receiver<Option<Ended>>>> {
        // Each change is one insert or remove: the map is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
