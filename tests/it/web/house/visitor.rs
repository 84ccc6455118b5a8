//! A visitor: a browser as far as cookies and forms go, and what it reads.

use std::{collections::BTreeMap, net::SocketAddr};

use bytes::Bytes;
use http::{HeaderMap, Request, header};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use super::*;

/// An answer.
#[derive(Debug)]
pub(in crate::web) struct Page {
    pub(in crate::web) status: u16,
    pub(in crate::web) headers: HeaderMap,
    pub(in crate::web) body: String,
}

impl Page {
    pub(in crate::web) fn header(&self, name: impl header::AsHeaderName) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    /// What is set, one line each.
    pub(in crate::web) fn cookies(&self) -> Vec<&str> {
        let lines = self.headers.get_all(header::SET_COOKIE).iter();
        lines.map(|line| line.to_str().unwrap()).collect()
    }

    /// The words of the main part, one space between each two.
    pub(in crate::web) fn words(&self) -> String {
        let (_, main) = self.body.split_once("<main").expect("a main part");
        let (main, _) = main.split_once("</main>").unwrap();
        let (_, main) = main.split_once('>').unwrap();
        let mut text = String::new();
        for piece in main.split('<') {
            let words = piece.split_once('>').map_or(piece, |(_, words)| words);
            text.push(' ');
            text.push_str(words);
        }
        let words: Vec<_> = text.split_whitespace().collect();
        let text = words.join(" ").replace("&lt;", "<").replace("&gt;", ">");
        text.replace("&quot;", "\"").replace("&amp;", "&")
    }

    /// The hidden fields of the form that is sent to `action`.
    pub(in crate::web) fn fields(&self, action: &str) -> Vec<(String, String)> {
        let begin = format!("action=\"{action}\"");
        let (_, form) = self.body.split_once(&begin).expect("the form");
        let (form, _) = form.split_once("</form>").unwrap();
        let inputs = form.split("<input type=\"hidden\"").skip(1);
        inputs
            .map(|input| {
                let attribute = |name: &str| {
                    let (_, rest) = input.split_once(&format!("{name}=\"")).unwrap();
                    let (value, _) = rest.split_once('"').unwrap();
                    value.replace("&amp;", "&")
                };
                (attribute("name"), attribute("value"))
            })
            .collect()
    }

    /// The provider's address that a browser goes to from here.
    pub(in crate::web) fn provider(&self) -> url::Url {
        let (_, url) = self
            .header("refresh")
            .split_once("0; url=")
            .expect("a refresh");
        url.parse().unwrap()
    }
}

/// A browser.
#[derive(Clone)]
pub(in crate::web) struct Visitor<'h> {
    pub(super) house: &'h House,
    pub(in crate::web) cookies: BTreeMap<String, String>,
}

impl Visitor<'_> {
    /// A request with this browser's cookies and the site's name.
    pub(in crate::web) fn request(&self, method: &str, path: &str) -> http::request::Builder {
        let (_, host) = self.house.public_url.split_once("://").unwrap();
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, host);
        if !self.cookies.is_empty() {
            let pairs = self
                .cookies
                .iter()
                .map(|(name, value)| format!("{name}={value}"));
            let line: Vec<_> = pairs.collect();
            request = request.header(header::COOKIE, line.join("; "));
        }
        request
    }

    pub(in crate::web) async fn get(&mut self, path: &str) -> Page {
        let request = self.request("GET", path).body(Full::default()).unwrap();
        self.send(request).await
    }

    /// Sends a form as browsers do.
    pub(in crate::web) async fn post(&mut self, path: &str, fields: &[(String, String)]) -> Page {
        let request = self.form(path, fields);
        self.send(request).await
    }

    pub(in crate::web) fn form(
        &self,
        path: &str,
        fields: &[(String, String)],
    ) -> Request<Full<Bytes>> {
        let (head, ()) = self.request("POST", path).body(()).unwrap().into_parts();
        let (_, host) = self.house.public_url.split_once("://").unwrap();
        let mut request = form(host, path, fields);
        let headers = request.headers_mut();
        headers.extend(head.headers);
        headers.insert(header::ORIGIN, self.house.public_url.parse().unwrap());
        request
    }

    /// Sends a request and keeps what it sets.
    pub(in crate::web) async fn send(&mut self, request: Request<Full<Bytes>>) -> Page {
        let page = self.house.send(request).await;
        for line in page.cookies() {
            let (pair, attributes) = line.split_once("; ").unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            if attributes.contains("Max-Age=0;") {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        page
    }

    /// Presses the button of the form that is sent to `action`, on the page at `path`.
    pub(in crate::web) async fn press(&mut self, path: &str, action: &str) -> Page {
        let page = self.get(path).await;
        assert_eq!(page.status, 200, "{}", page.body);
        self.post(action, &page.fields(action)).await
    }

    pub(in crate::web) async fn sign_in(&mut self, token: &str) {
        let page = self.post("/login", &[field("token", token)]).await;
        assert_eq!(
            (page.status, page.header("location")),
            (303, "/"),
            "{}",
            page.body
        );
    }

    /// Begins to connect; gives the page that leads to the provider.
    pub(in crate::web) async fn begin(&mut self) -> Page {
        let page = self.press("/connect/demo", "/connect/demo").await;
        assert_eq!(page.status, 200, "{}", page.body);
        page
    }

    /// Comes back from the provider with this instead of a code, if anything; gives the page that tells what came of it.
    pub(in crate::web) async fn comes_back(&mut self, begun: &Page, with: &str) -> Page {
        let path = callback(begun, with);
        let page = self.get(&path).await;
        assert_eq!(
            (page.status, page.header("location")),
            (303, "/result"),
            "{}",
            page.body
        );
        self.get("/result").await
    }
}

/// Sends a request as it is.
pub(in crate::web) async fn send(address: SocketAddr, request: Request<Full<Bytes>>) -> Page {
    read(TokioIo::new(dial(address).await), request).await
}

/// The page that answers a request on a connection.
pub(in crate::web) async fn read<S>(io: TokioIo<S>, request: Request<Full<Bytes>>) -> Page
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
    tokio::spawn(connection);
    let answer = patiently(sender.send_request(request)).await.unwrap();
    let (head, body) = answer.into_parts();
    let body = patiently(body.collect()).await.unwrap().to_bytes();
    Page {
        status: head.status.as_u16(),
        headers: head.headers,
        body: String::from_utf8(body.to_vec()).unwrap(),
    }
}

/// A form, as a browser at `http://{host}` sends it.
pub(in crate::web) fn form(
    host: &str,
    path: &str,
    fields: &[(String, String)],
) -> Request<Full<Bytes>> {
    let body = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(fields)
        .finish();
    Request::post(path)
        .header(header::HOST, host)
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .header(header::ORIGIN, format!("http://{host}"))
        .header("sec-fetch-site", "same-origin")
        .body(Full::from(body))
        .unwrap()
}

/// Where the provider sends the browser back to; `with` are parameters beside `state` and `iss`.
pub(in crate::web) fn callback(begun: &Page, with: &str) -> String {
    let url = begun.provider();
    let (_, state) = url.query_pairs().find(|(name, _)| name == "state").unwrap();
    format!("/oauth/callback?{with}&state={state}&iss=http%3A%2F%2F127.0.0.2%3A9000")
}
