//! The bundled tool server: MCP over streamable HTTP, 2026-07-28 without sessions and 2025-11-25 with them.

mod http;
mod protocol;
mod tools;

use std::{
    collections::VecDeque,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::TcpListener,
    sync::Semaphore,
    task::{JoinHandle, JoinSet},
};

/// Connections, sessions and messages that it holds at most.
const MOST: usize = 256;

/// A running tool server; it stops when dropped.
#[derive(Debug)]
pub struct ToolServer {
    address: SocketAddr,
    state: Arc<State>,
    task: JoinHandle<()>,
}

impl ToolServer {
    /// Starts one on a free port of 127.0.0.1, on the current runtime. `count_slowly` takes `tick` for each number.
    pub async fn start(tick: Duration) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let state = Arc::new(State {
            tick,
            ..State::default()
        });
        let task = tokio::spawn(accept(listener, Arc::clone(&state)));
        Ok(Self {
            address,
            state,
            task,
        })
    }

    /// Where it listens; its endpoint is `/mcp`.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The messages that `send_message` has sent, oldest first.
    pub fn sent(&self) -> Vec<Message> {
        let sent = self
            .state
            .sent
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        sent.iter().cloned().collect()
    }
}

impl Drop for ToolServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What `send_message` was asked to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Whom to.
    pub to: String,
    /// What.
    pub text: String,
}

#[derive(Debug, Default)]
struct State {
    tick: Duration,
    sessions: Mutex<VecDeque<String>>,
    sent: Mutex<VecDeque<Message>>,
}

impl State {
    /// Begins a session; the oldest one ends when there are too many.
    fn begin_session(&self) -> String {
        let id = crate::id::token();
        push(&self.sessions, id.clone());
        id
    }

    fn has_session(&self, id: &str) -> bool {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.iter().any(|session| session == id)
    }

    fn end_session(&self, id: &str) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|session| session != id);
    }

    fn send(&self, message: Message) {
        push(&self.sent, message);
    }
}

fn push<T>(queue: &Mutex<VecDeque<T>>, item: T) {
    let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
    if queue.len() == MOST {
        queue.pop_front();
    }
    queue.push_back(item);
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    let places = Arc::new(Semaphore::new(MOST));
    // Dropped with this task, and every connection with it.
    let mut connections = JoinSet::new();
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        let Ok((stream, _)) = listener.accept().await else {
            // Out of file descriptors, perhaps; the next one may succeed.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        // A socket that refuses the option is only slower.
        let _ = stream.set_nodelay(true);
        while connections.try_join_next().is_some() {}
        let state = Arc::clone(&state);
        connections.spawn(async move {
            let service = service_fn(|request| http::answer(Arc::clone(&state), request));
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .serve_connection(TokioIo::new(stream), service);
            // A client that breaks its connection is no concern of the others.
            let _ = connection.await;
            drop(place);
        });
    }
}

#[cfg(test)]
mod tests;
