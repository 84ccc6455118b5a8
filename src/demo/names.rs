//! A name server on loopback whose answers can be changed while it runs: what an attacker's name server does.

use std::{
    collections::HashMap,
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
};

use hickory_proto::{
    op::{Message, MessageType, ResponseCode},
    rr::{RData, Record, RecordType},
};
use tokio::{net::UdpSocket, task::JoinHandle};

/// A running name server (RFC 1035 over UDP); it stops when dropped.
#[derive(Debug)]
pub struct NameServer {
    address: SocketAddr,
    answers: Arc<Answers>,
    task: JoinHandle<()>,
}

/// The only names it knows, each with one address.
#[derive(Debug, Default)]
struct Answers(Mutex<HashMap<String, IpAddr>>);

impl NameServer {
    /// Starts one on a free port of 127.0.0.1; it runs on the current runtime.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is a name server of the demo, on loopback, and asks nobody"
    )]
    pub async fn start() -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = socket.local_addr()?;
        let answers = Arc::new(Answers::default());
        let task = tokio::spawn(serve(socket, Arc::clone(&answers)));
        Ok(Self {
            address,
            answers,
            task,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it answers for `name` (lower case, no trailing dot) from now on.
    pub fn set(&self, name: &str, address: IpAddr) {
        let mut answers = self
            .answers
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        answers.insert(name.to_owned(), address);
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(socket: UdpSocket, answers: Arc<Answers>) {
    let mut buffer = [0; 1232];
    while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
        let Ok(question) = Message::from_vec(&buffer[..length]) else {
            continue;
        };
        if question.metadata.message_type == MessageType::Query
            && let Ok(reply) = answers.answer(&question).to_vec()
        {
            // A client that went away is no concern of the others.
            let _ = socket.send_to(&reply, from).await;
        }
    }
}

impl Answers {
    fn answer(&self, question: &Message) -> Message {
        let mut reply = Message::response(question.metadata.id, question.metadata.op_code);
        reply.metadata.recursion_desired = question.metadata.recursion_desired;
        reply.metadata.recursion_available = true;
        let Some(query) = question.queries.first() else {
            reply.metadata.response_code = ResponseCode::FormErr;
            return reply;
        };
        reply.queries.push(query.clone());
        let name = query
            .name()
            .to_ascii()
            .trim_end_matches('.')
            .to_ascii_lowercase();
        let known = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&name)
            .copied();
        let data = match (known, query.query_type()) {
            (Some(IpAddr::V4(address)), RecordType::A) => RData::A(address.into()),
            (Some(IpAddr::V6(address)), RecordType::AAAA) => RData::AAAA(address.into()),
            (Some(_), _) => return reply,
            (None, _) => {
                reply.metadata.response_code = ResponseCode::NXDomain;
                return reply;
            }
        };
        // Nobody may keep the answer: the next question can be told something else.
        reply
            .answers
            .push(Record::from_rdata(query.name().clone(), 0, data));
        reply
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hickory_proto::{op::Query, rr::Name};

    async fn ask(server: &NameServer, name: &str, kind: RecordType) -> (ResponseCode, Vec<RData>) {
        #[expect(
            clippy::disallowed_methods,
            reason = "asks the server under test, on loopback"
        )]
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let mut question = Message::query();
        question
            .queries
            .push(Query::query(Name::from_ascii(name).unwrap(), kind));
        socket
            .send_to(&question.to_vec().unwrap(), server.address())
            .await
            .unwrap();
        let mut buffer = [0; 512];
        let (length, _) = socket.recv_from(&mut buffer).await.unwrap();
        let reply = Message::from_vec(&buffer[..length]).unwrap();
        assert_eq!(reply.metadata.id, question.metadata.id);
        let data = reply
            .answers
            .iter()
            .map(|record| record.data.clone())
            .collect();
        (reply.metadata.response_code, data)
    }

    #[tokio::test]
    async fn answers_change_while_it_runs() {
        let server = NameServer::start().await.unwrap();
        let first = IpAddr::from([127, 0, 0, 1]);
        server.set("rebind.demo.test", first);
        let v4 = |address: [u8; 4]| vec![RData::A(Ipv4Addr::from(address).into())];
        let name = "Rebind.demo.test.";
        assert_eq!(
            ask(&server, name, RecordType::A).await,
            (ResponseCode::NoError, v4([127, 0, 0, 1]))
        );
        assert_eq!(
            ask(&server, name, RecordType::AAAA).await,
            (ResponseCode::NoError, vec![])
        );
        server.set("rebind.demo.test", IpAddr::from([169, 254, 169, 254]));
        assert_eq!(
            ask(&server, name, RecordType::A).await,
            (ResponseCode::NoError, v4([169, 254, 169, 254]))
        );
        assert_eq!(
            ask(&server, "other.test.", RecordType::A).await,
            (ResponseCode::NXDomain, vec![])
        );
    }
}
