//! Permits of the forward proxy, a listener that does nothing but forward plain requests, and a client that says exactly
//! the bytes a test wants.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use bytes::BytesMut;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
    time::Instant,
};
use tollgate::{
    address::{Rules, Target},
    egress::Egress,
    policy::{
        AllowRule, HostPattern, Parent, Proxy, ProxyPermit, Snapshot, TunnelTls, Who, decide_egress,
    },
    refusal::Refusal,
    tunnel::{Bounds, Forwarded, Heads, Next, Source, forward},
};

use super::permit::subject;

/// What a test may vary of a permit.
#[derive(Clone)]
pub(crate) struct Passes {
    pub(crate) user: &'static str,
    pub(crate) generation: u64,
    pub(crate) rules: Rules,
    pub(crate) parent: Option<Parent>,
}

impl Default for Passes {
    fn default() -> Self {
        Self {
            user: "ann",
            generation: 1,
            rules: Rules::default(),
            parent: None,
        }
    }
}

impl Passes {
    /// Goes through a parent proxy.
    pub(crate) fn through(mut self, url: &str, resolves: bool) -> Self {
        let target = Target::from_operator(url).unwrap();
        self.parent = Some(Parent { target, resolves });
        self
    }

    /// A permit for `target`, whose host and port a rule names.
    pub(crate) fn permit(&self, target: &Target) -> ProxyPermit {
        let place = format!("{}:{}", target.host(), target.port());
        let rule = AllowRule {
            host: HostPattern::read(&place).unwrap(),
            scheme: None,
            who: Who::default(),
            tls: TunnelTls::Pass,
            methods: Vec::new(),
            paths: Vec::new(),
            report_until: None,
            also_server: false,
            origin: "egress.toml:2: [[allow]]".into(),
        };
        let snapshot = Snapshot {
            generation: self.generation,
            addresses: Arc::new(self.rules.clone()),
            proxy: Proxy {
                allow: vec![Arc::new(rule)],
                parent: self.parent.clone().map(Arc::new),
                ..Proxy::default()
            },
            ..Snapshot::default()
        };
        decide_egress(
            &snapshot,
            &subject("default", self.user),
            target,
            None,
            SystemTime::UNIX_EPOCH,
        )
        .unwrap()
    }
}

/// A listener that forwards plain requests to wherever they ask, and answers failures with their code.
pub(crate) struct Forwarder {
    pub(crate) address: SocketAddr,
    ends: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Forwarder {
    pub(crate) async fn start(egress: Egress, passes: Passes, idle: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let ends = Arc::<Mutex<Vec<String>>>::default();
        let told = ends.clone();
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (egress, passes, ends) = (egress.clone(), passes.clone(), told.clone());
                tokio::spawn(serve(stream, egress, passes, idle, ends));
            }
        });
        Self {
            address,
            ends,
            task,
        }
    }

    /// How each exchange ended, in their order.
    pub(crate) fn ends(&self) -> Vec<String> {
        self.ends.lock().unwrap().clone()
    }

    pub(crate) async fn client(&self) -> Raw {
        Raw::to(self.address).await
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    mut stream: TcpStream,
    egress: Egress,
    passes: Passes,
    idle: Duration,
    ends: Arc<Mutex<Vec<String>>>,
) {
    stream.set_nodelay(true).unwrap();
    let mut input = BytesMut::new();
    loop {
        let mut heads = Heads::default();
        let head = loop {
            match heads.next(&mut input) {
                Ok(Some(head)) => break head,
                Ok(None) => {}
                Err(error) => return answer(&mut stream, &Refusal::from(error)).await,
            }
            if stream.read_buf(&mut input).await.unwrap_or(0) == 0 {
                return;
            }
        };
        let permit = passes.permit(&head.target);
        let client = Source {
            io: &mut stream,
            input: &mut input,
        };
        let bounds = Bounds {
            idle,
            until: Instant::now() + Duration::from_secs(60),
        };
        let done = forward(&egress, &permit, &head, client, bounds, |_, _| {}).await;
        let error = done.error.as_ref().map(|error| error.code().as_str());
        let end = match (done.status, error) {
            (status, Some(code)) => format!("{status:?} {:?} {code}", done.next),
            (status, None) => format!("{status:?} {:?}", done.next),
        };
        ends.lock().unwrap().push(end);
        if let (None, Some(error)) = (&done.status, &done.error) {
            answer(&mut stream, &Refusal::from(error)).await;
        }
        if !goes_on(done, &mut stream, &mut input).await {
            return;
        }
    }
}

/// Ends the connection as it has to be, but where another request may follow.
async fn goes_on(done: Forwarded, stream: &mut TcpStream, input: &mut BytesMut) -> bool {
    match done.next {
        Next::Keep => return true,
        Next::Close => {
            let _ = stream.shutdown().await;
            let mut rest = Vec::new();
            let _ =
                tokio::time::timeout(Duration::from_secs(1), stream.read_to_end(&mut rest)).await;
        }
        Next::Cut => stream.set_zero_linger().unwrap(),
        Next::Tunnel { mut io, early } => {
            stream.write_all(&early).await.unwrap();
            io.write_all(input).await.unwrap();
            let _ = tokio::io::copy_bidirectional(stream, &mut io).await;
        }
    }
    false
}

async fn answer(stream: &mut TcpStream, refusal: &Refusal) {
    let text = format!("{}\n{}", refusal.code.as_str(), refusal.public);
    let answer = format!(
        "HTTP/1.1 502 x\r\ncontent-length: {}\r\n\r\n{text}",
        text.len()
    );
    stream.write_all(answer.as_bytes()).await.unwrap();
}

/// A client that says and reads bytes.
pub(crate) struct Raw {
    stream: TcpStream,
    input: Vec<u8>,
}

impl Raw {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests connect to their own servers on loopback"
    )]
    pub(crate) async fn to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            input: Vec::new(),
        }
    }

    pub(crate) async fn say(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
    }

    /// Closes its own side.
    pub(crate) async fn hang_up(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    /// What comes, up to and with `end`.
    pub(crate) async fn until(&mut self, end: &str) -> String {
        loop {
            let at = self
                .input
                .windows(end.len())
                .position(|at| at == end.as_bytes());
            if let Some(at) = at {
                let taken = self.input.drain(..at + end.len()).collect();
                return String::from_utf8(taken).unwrap();
            }
            let read = self.stream.read_buf(&mut self.input).await;
            assert!(
                read.unwrap_or(0) > 0,
                "no `{end}` in {}",
                String::from_utf8_lossy(&self.input)
            );
        }
    }

    /// The next head and the body that its length announces.
    pub(crate) async fn answer(&mut self) -> (String, String) {
        let head = self.until("\r\n\r\n").await;
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let length = length.map_or(0, |length| length.parse().unwrap());
        while self.input.len() < length {
            assert!(self.stream.read_buf(&mut self.input).await.unwrap() > 0);
        }
        let body = self.input.drain(..length).collect();
        (head, String::from_utf8(body).unwrap())
    }

    /// The code that a failure is told by, in place of an answer.
    pub(crate) async fn failure(&mut self) -> String {
        let (_, body) = self.answer().await;
        body.split_once('\n').expect("a line").0.to_owned()
    }

    /// All the rest, and whether it ended in the usual way.
    pub(crate) async fn rest(&mut self) -> (String, bool) {
        let result = self.stream.read_to_end(&mut self.input).await;
        (
            String::from_utf8(std::mem::take(&mut self.input)).unwrap(),
            result.is_ok(),
        )
    }
}
