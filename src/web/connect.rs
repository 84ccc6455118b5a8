//! What a person is connected to; connecting and disconnecting.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::Full;
use url::{Url, form_urlencoded};

use super::{
    answer,
    flash::Flash,
    form::Form,
    pages::{self, Entry, Offer, Standing},
    route,
    visit::Visit,
};
use crate::{
    connect::{Error, Revoked, State},
    deadline::Deadline,
    identity::Browser,
    policy::{Auth, Permit, Purpose, decide_leg},
    refusal::Refusal,
};

/// How long a page may wait for a provider.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Where the browser goes once it is connected: a field of the form, and a parameter of the page.
pub(super) const RETURN_TO: &str = "return_to";
/// What the person saw of the provider: a field of the form.
pub(super) const CONFIRMATION: &str = "confirmation";
/// The field of a static secret.
pub(super) const SECRET: &str = "secret";

impl Visit<'_> {
    /// Every server that the user may use, and how it stands.
    pub(super) async fn home(&self) -> Result<Response<Full<Bytes>>, Refusal> {
        let browser = self.browser().await?;
        let mut names: Vec<_> = self.policy.servers.keys().collect();
        names.sort();
        let mut entries = Vec::new();
        for name in names {
            if let Ok(permit) = self.permit(&browser, name) {
                entries.push(self.entry(&permit).await);
            }
        }
        let left = self.left(&browser).await;
        let markup = pages::home(&self.who(&browser), &entries, &left);
        Ok(answer::page(StatusCode::OK, markup))
    }

    /// Servers that are not offered to the user any more, to which a connection or a secret is kept. Where that cannot be
    /// read, each server that is offered says so.
    async fn left(&self, browser: &Browser) -> Vec<Arc<str>> {
        let held = self.inner.connections.held(&browser.owner()).await;
        let names = held.unwrap_or_default().into_iter();
        names
            .filter(|name| self.permit(browser, name).is_err())
            .collect()
    }

    async fn entry(&self, permit: &Permit) -> Entry {
        let server = permit.server();
        let standing = match &server.auth {
            Auth::None => Standing::Open,
            Auth::Shared(_) | Auth::Bearer | Auth::Header(_) | Auth::OAuth(_) => {
                match self.inner.connections.state(permit).await {
                    Ok(connection) if !server.auth.is_personal() => {
                        match connection.state == State::Connected {
                            true => Standing::Shared,
                            false => Standing::Unset,
                        }
                    }
                    Ok(connection) => Standing::Own(Box::new(connection)),
                    Err(error) => Standing::Unknown(error.to_string()),
                }
            }
        };
        Entry {
            name: server.name.clone(),
            title: server.title.clone(),
            entered: matches!(server.auth, Auth::Bearer | Auth::Header(_)),
            standing,
        }
    }

    /// The page of one server. It begins nothing.
    pub(super) async fn connect_page(
        &self,
        server: &str,
    ) -> Result<Response<Full<Bytes>>, Refusal> {
        let browser = self.browser().await?;
        let permit = self.permit(&browser, server)?;
        let entry = self.entry(&permit).await;
        let offer = match &permit.server().auth {
            Auth::None | Auth::Shared(_) => Offer::Nothing,
            Auth::Bearer => Offer::Secret("Authorization: Bearer".to_owned()),
            Auth::Header(name) => Offer::Secret(name.to_string()),
            Auth::OAuth(_) => {
                let connections = &self.inner.connections;
                match connections
                    .preview(&permit, Deadline::after(PATIENCE))
                    .await
                {
                    Ok(preview) => Offer::Connect(Box::new(preview)),
                    Err(error) => return self.cannot(&browser, &entry, &error),
                }
            }
        };
        let query = self.head.uri.query().unwrap_or_default();
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        let return_to = pairs.find(|(name, _)| name == RETURN_TO);
        let form = pages::ServerForm {
            offer,
            proof: self.proof(&browser, &route::connect(server)),
            return_to: return_to.map(|(_, url)| url.into_owned()),
        };
        let markup = pages::server(&self.who(&browser), &entry, &form);
        Ok(answer::page(StatusCode::OK, markup))
    }

    /// The page of a server that cannot be connected to now.
    fn cannot(
        &self,
        browser: &Browser,
        entry: &Entry,
        error: &Error,
    ) -> Result<Response<Full<Bytes>>, Refusal> {
        self.inner
            .recorder
            .failed(browser, &entry.name, error.code());
        let markup = pages::cannot(&self.who(browser), entry, &error.into());
        Ok(answer::page(answer::status(error.code()), markup))
    }

    /// Begins a flow, or keeps the secret that was entered.
    pub(super) async fn connect(
        &self,
        server: &str,
        form: &Form,
    ) -> Result<Response<Full<Bytes>>, Refusal> {
        let browser = self.proven(form).await?;
        let permit = self.permit(&browser, server)?;
        match &permit.server().auth {
            Auth::OAuth(_) => self.start(&browser, &permit, form).await,
            Auth::Bearer | Auth::Header(_) => {
                let secret = form.get(SECRET).unwrap_or_default().trim();
                match self
                    .inner
                    .connections
                    .enter(&permit, secret.as_bytes())
                    .await
                {
                    Ok(()) => self.tell(
                        Some(&browser),
                        Flash::Kept {
                            server: server.to_owned(),
                        },
                    ),
                    Err(error) => self.tell(Some(&browser), Flash::about(&error, Some(server))),
                }
            }
            Auth::None | Auth::Shared(_) => answer::see(&route::connect(server)),
        }
    }

    /// The browser goes to the provider from a page of its own: Chromium holds `form-action` against every redirect that
    /// follows a form, at whatever hosts the provider has its pages.
    async fn start(
        &self,
        browser: &Browser,
        permit: &Permit,
        form: &Form,
    ) -> Result<Response<Full<Bytes>>, Refusal> {
        let connections = &self.inner.connections;
        let return_to = form.get(RETURN_TO).filter(|url| !url.is_empty());
        let seen = form.get(CONFIRMATION).unwrap_or_default();
        let deadline = Deadline::after(PATIENCE);
        let server = &*permit.server().name;
        let started = match connections.start(permit, return_to, seen, deadline).await {
            Ok(started) => started,
            Err(error) => return self.tell(Some(browser), Flash::about(&error, Some(server))),
        };
        let url = &started.authorize_url;
        let host = Url::parse(url).ok().filter(is_web);
        let host = host.and_then(|url| {
            let host = url.host_str()?;
            let port = url.port().map(|port| format!(":{port}"));
            Some(format!("{host}{}", port.unwrap_or_default()))
        });
        let host = host.ok_or_else(|| {
            let what = "its authorization endpoint is no web address".to_owned();
            let server = permit.server().name.clone();
            Refusal::from(Error::Unusable { server, what })
        })?;
        let markup = pages::going(&self.who(browser), &host, url);
        let mut answer = answer::page(StatusCode::OK, markup);
        let headers = answer.headers_mut();
        for cookie in self.cookies().bind(&started.cookie, &started.cookie_value) {
            headers.append(header::SET_COOKIE, cookie);
        }
        // A browser that does not follow it shows the page's link.
        if let Ok(refresh) = HeaderValue::try_from(format!("0; url={url}")) {
            headers.insert(header::REFRESH, refresh);
        }
        headers.insert(
            header::REFERRER_POLICY,
            HeaderValue::from_static("no-referrer"),
        );
        Ok(answer)
    }

    pub(super) async fn disconnect_page(
        &self,
        server: &str,
    ) -> Result<Response<Full<Bytes>>, Refusal> {
        let browser = self.browser().await?;
        let proof = self.proof(&browser, &route::disconnect(server));
        let permit = match self.permit(&browser, server) {
            Ok(permit) => permit,
            Err(refusal) => {
                self.still_held(&browser, server, refusal).await?;
                let markup = pages::leave(&self.who(&browser), server, &proof);
                return Ok(answer::page(StatusCode::OK, markup));
            }
        };
        let entry = self.entry(&permit).await;
        let markup = pages::disconnect(&self.who(&browser), &entry, &proof);
        Ok(answer::page(StatusCode::OK, markup))
    }

    pub(super) async fn disconnect(
        &self,
        server: &str,
        form: &Form,
    ) -> Result<Response<Full<Bytes>>, Refusal> {
        let browser = self.proven(form).await?;
        let (connections, deadline) = (&self.inner.connections, Deadline::after(PATIENCE));
        let ended = match self.permit(&browser, server) {
            Ok(permit) => connections.disconnect(&permit, deadline).await,
            Err(refusal) => {
                self.still_held(&browser, server, refusal).await?;
                let permit = decide_leg(&self.policy, Purpose::Disconnect, server).ok();
                let owner = browser.owner();
                connections.leave(owner, server, permit, deadline).await
            }
        };
        let flash = match ended {
            Ok(revoked) => Flash::Disconnected {
                server: server.to_owned(),
                revoked: match revoked {
                    Revoked::Yes => "yes",
                    Revoked::No => "no",
                    Revoked::Unsupported => "unsupported",
                }
                .to_owned(),
            },
            Err(error) => Flash::about(&error, Some(server)),
        };
        self.tell(Some(&browser), flash)
    }

    /// A server that is not offered to the user and to which nothing of theirs is kept is told of as one that is none.
    async fn still_held(
        &self,
        browser: &Browser,
        server: &str,
        refusal: Refusal,
    ) -> Result<(), Refusal> {
        let held = self.inner.connections.held(&browser.owner()).await?;
        held.contains(server).then_some(()).ok_or(refusal)
    }

    /// The client id metadata document, which providers fetch.
    pub(super) fn metadata(&self) -> Result<Response<Full<Bytes>>, Refusal> {
        let document = self.inner.connections.client_metadata();
        let document = document.ok_or_else(route::unknown)?;
        let mut answer = answer::text(StatusCode::OK, "application/json", document);
        let kept = HeaderValue::from_static("public, max-age=300");
        answer.headers_mut().insert(header::CACHE_CONTROL, kept);
        Ok(answer)
    }
}

/// Whether a browser may be sent there.
fn is_web(url: &Url) -> bool {
    matches!(url.scheme(), "https" | "http")
}
