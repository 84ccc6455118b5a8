//! A name server on loopback, over UDP and TCP on one port.

use std::{
    net::{IpAddr, SocketAddr},
    str::FromStr,
    sync::{Arc, Mutex},
};

use hickory_proto::{
    op::{Message, MessageType, ResponseCode},
    rr::{
        Name, RData, Record, RecordType,
        rdata::{A, AAAA, CNAME},
    },
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream, UdpSocket},
    task::JoinHandle,
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
    /// Records of the question's name: addresses, or `name>target` for an alias.
    Records(Vec<String>, u32),
    /// A response code without records.
    Code(ResponseCode),
    /// An empty answer with the truncation bit.
    Truncated,
    /// Nothing, ever.
    Silence,
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
    fn reply(&self, query: &[u8], tcp: bool) -> Option<Vec<u8>> {
        let query = Message::from_vec(query).unwrap();
        let asked = query.queries[0].clone();
        let mut question = Question {
            name: asked.name().to_string().to_ascii_lowercase(),
            records: asked.query_type(),
            tcp,
            earlier: 0,
        };
        {
            let mut seen = self.seen.lock().unwrap();
            let like = |other: &&Question| {
                other.name == question.name && other.records == question.records
            };
            question.earlier = seen.iter().filter(like).count();
            seen.push(question.clone());
        }
        let mut message = Message::new(
            query.metadata.id,
            MessageType::Response,
            query.metadata.op_code,
        );
        message.add_query(asked.clone());
        match (self.answer)(&question) {
            Reply::Silence => return None,
            Reply::Code(code) => message.metadata.response_code = code,
            Reply::Truncated => message.metadata.truncation = true,
            Reply::Records(records, ttl) => {
                message.add_answers(records.iter().map(|text| record(asked.name(), text, ttl)));
            }
        }
        Some(message.to_vec().unwrap())
    }
}

fn record(question: &Name, text: &str, ttl: u32) -> Record {
    if let Some((name, target)) = text.split_once('>') {
        let target = RData::CNAME(CNAME(Name::from_str(target).unwrap()));
        return Record::from_rdata(Name::from_str(name).unwrap(), ttl, target);
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
    let mut buffer = vec![0; 4096];
    loop {
        let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
        if let Some(reply) = brain.reply(&buffer[..length], false) {
            socket.send_to(&reply, from).await.unwrap();
        }
    }
}

async fn serve_tcp(listener: TcpListener, brain: Arc<Brain>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        tokio::spawn(serve_tcp_client(stream, brain.clone()));
    }
}

async fn serve_tcp_client(mut stream: TcpStream, brain: Arc<Brain>) {
    while let Ok(length) = stream.read_u16().await {
        let mut query = vec![0; usize::from(length)];
        stream.read_exact(&mut query).await.unwrap();
        if let Some(reply) = brain.reply(&query, true) {
            stream
                .write_u16(u16::try_from(reply.len()).unwrap())
                .await
                .unwrap();
            stream.write_all(&reply).await.unwrap();
        }
    }
}
