//! A name server on loopback, over UDP and TCP on one port, which may say anything, to each question something else.

use std::{
    net::{IpAddr, SocketAddr},
    str::FromStr,
    sync::{Arc, Mutex},
    time::Duration,
};

use hickory_proto::{
    op::{Message, MessageType, Query, ResponseCode},
    rr::{
        Name, RData, Record, RecordType,
        rdata::{
            A, AAAA, CNAME, HTTPS, SVCB,
            svcb::{IpHint, SvcParamKey, SvcParamValue},
        },
    },
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream, UdpSocket},
    task::{JoinHandle, JoinSet},
};

/// A question as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    /// Lower case, with the final dot.
    pub(crate) name: String,
    pub(crate) records: RecordType,
    pub(crate) tcp: bool,
    /// How many like it (same name, same records) came before.
    pub(crate) earlier: usize,
}

/// What the server does with a question.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// Records of the question's name: addresses, or `hint ADDRESS` for an HTTPS record with an IPv4 hint; of another name,
    /// `name=address`; and `name>target` for an alias. And their time to live.
    Records(Vec<String>, u32),
    /// A response code without records.
    Code(ResponseCode),
    /// Such records, of which there are more: with the truncation bit.
    Truncated(Vec<String>),
    /// Nothing, ever.
    Silence,
    /// Something else, after a while.
    Late(Duration, Box<Self>),
}

impl Reply {
    /// Addresses with a time to live of a minute.
    pub(crate) fn of(records: &[&str]) -> Self {
        Self::Records(
            records.iter().map(|record| (*record).to_owned()).collect(),
            60,
        )
    }

    /// The name exists and has nothing.
    pub(crate) fn nothing() -> Self {
        Self::of(&[])
    }

    /// The same, after a while.
    pub(crate) fn late(self, millis: u64) -> Self {
        Self::Late(Duration::from_millis(millis), Box::new(self))
    }
}

pub(crate) struct NameServer {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Question>>>,
    tasks: [JoinHandle<()>; 2],
}

impl NameServer {
    pub(crate) async fn start(answer: impl Fn(&Question) -> Reply + Send + Sync + 'static) -> Self {
        let (listener, socket) = same_port().await;
        let address = listener.local_addr().unwrap();
        let seen = Arc::<Mutex<Vec<Question>>>::default();
        let brain = Arc::new(Brain {
            answer: Box::new(answer),
            seen: seen.clone(),
        });
        let tasks = [
            tokio::spawn(serve_udp(socket, brain.clone())),
            tokio::spawn(serve_tcp(listener, brain)),
        ];
        Self {
            address,
            seen,
            tasks,
        }
    }

    /// Every question, in order of arrival.
    pub(crate) fn seen(&self) -> Vec<Question> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

struct Brain {
    answer: Box<dyn Fn(&Question) -> Reply + Send + Sync>,
    seen: Arc<Mutex<Vec<Question>>>,
}

impl Brain {
    async fn reply(&self, query: Vec<u8>, tcp: bool) -> Option<Vec<u8>> {
        let query = Message::from_vec(&query).unwrap();
        let asked = query.queries[0].clone();
        let mut reply = (self.answer)(&self.note(&asked, tcp));
        if let Reply::Late(time, later) = reply {
            tokio::time::sleep(time).await;
            reply = *later;
        }
        let mut message = Message::new(
            query.metadata.id,
            MessageType::Response,
            query.metadata.op_code,
        );
        message.add_query(asked.clone());
        let records = |texts: Vec<String>, ttl| {
            let each = texts.into_iter();
            each.map(move |text| record(asked.name(), &text, ttl))
        };
        match reply {
            Reply::Silence | Reply::Late(..) => return None,
            Reply::Code(code) => message.metadata.response_code = code,
            Reply::Truncated(texts) => {
                message.metadata.truncation = true;
                message.add_answers(records(texts, 60));
            }
            Reply::Records(texts, ttl) => {
                message.add_answers(records(texts, ttl));
            }
        }
        Some(message.to_vec().unwrap())
    }

    /// Remembers a question.
    fn note(&self, asked: &Query, tcp: bool) -> Question {
        let mut question = Question {
            name: asked.name().to_string().to_ascii_lowercase(),
            records: asked.query_type(),
            tcp,
            earlier: 0,
        };
        let mut seen = self.seen.lock().unwrap();
        let like =
            |other: &&Question| other.name == question.name && other.records == question.records;
        question.earlier = seen.iter().filter(like).count();
        seen.push(question.clone());
        question
    }
}

fn record(question: &Name, text: &str, ttl: u32) -> Record {
    if let Some((name, target)) = text.split_once('>') {
        let target = RData::CNAME(CNAME(Name::from_str(target).unwrap()));
        return Record::from_rdata(Name::from_str(name).unwrap(), ttl, target);
    }
    if let Some(address) = text.strip_prefix("hint ") {
        let hint = IpHint(vec![A(address.parse().unwrap())]);
        let hint = (SvcParamKey::Ipv4Hint, SvcParamValue::Ipv4Hint(hint));
        let data = RData::HTTPS(HTTPS(SVCB::new(1, Name::root(), vec![hint])));
        return Record::from_rdata(question.clone(), ttl, data);
    }
    let (name, address) = match text.split_once('=') {
        Some((name, address)) => (Name::from_str(name).unwrap(), address),
        None => (question.clone(), text),
    };
    let data = match address.parse().unwrap() {
        IpAddr::V4(address) => RData::A(A(address)),
        IpAddr::V6(address) => RData::AAAA(AAAA(address)),
    };
    Record::from_rdata(name, ttl, data)
}

#[expect(clippy::disallowed_methods, reason = "the tests' own name server")]
async fn same_port() -> (TcpListener, UdpSocket) {
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        if let Ok(socket) = UdpSocket::bind(listener.local_addr().unwrap()).await {
            return (listener, socket);
        }
    }
}

async fn serve_udp(socket: UdpSocket, brain: Arc<Brain>) {
    let socket = Arc::new(socket);
    let mut buffer = vec![0; 4096];
    let mut replies = JoinSet::new();
    loop {
        let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
        let (socket, brain, query) = (socket.clone(), brain.clone(), buffer[..length].to_vec());
        // One that is late holds no other up.
        replies.spawn(async move {
            if let Some(reply) = brain.reply(query, false).await {
                socket.send_to(&reply, from).await.unwrap();
            }
        });
    }
}

async fn serve_tcp(listener: TcpListener, brain: Arc<Brain>) {
    let mut clients = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        clients.spawn(serve_tcp_client(stream, brain.clone()));
    }
}

async fn serve_tcp_client(mut stream: TcpStream, brain: Arc<Brain>) {
    while let Ok(length) = stream.read_u16().await {
        let mut query = vec![0; usize::from(length)];
        stream.read_exact(&mut query).await.unwrap();
        if let Some(reply) = brain.reply(query, true).await {
            stream
                .write_u16(u16::try_from(reply.len()).unwrap())
                .await
                .unwrap();
            stream.write_all(&reply).await.unwrap();
        }
    }
}
