//! What a person is connected to; connecting, disconnecting, and the way back from providers.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::Full;
use sha2::{Digest, Sha256};
use url::{Url, form_urlencoded};

use super::{
    answer,
    flash::{Failed, Flash},
    form::Form,
    pages::{self, Entry, Offer, Standing},
    route,
    visit::Visit,
};
use crate::{
    connect::{Callback, Error, Finished, Revoked},
    deadline::Deadline,
    id,
    identity::{Browser, LoginError},
    policy::{Auth, Permit},
    refusal::Refusal,
};

/// How long a page may wait for a provider.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where the browser goes once it is connected: a field of the form, and a parameter of the page.
pub(super) const RETURN_TO: &str = "return_to";
/// The issuer that the person saw: a field of the form.
pub(super) const ISSUER: &str = "issuer";
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
        let markup = pages::home(&self.who(&browser), &entries);
        Ok(answer::page(StatusCode::OK, markup))
    }

    async fn entry(&self, permit: &Permit) -> Entry {
        let server = permit.server();
        let standing = match &server.auth {
            Auth::None => Standing::Open,
            Auth::Shared(_) => Standing::Shared,
            Auth::Bearer | Auth::Header(_) | Auth::OAuth(_) => {
                match self.inner.connections.state(permit).await {
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
        let markup = pages::cannot(&self.who(browser), entry, &failed(error));
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
                    Err(error) => self.tell(Some(&browser), about(&error, server)),
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
        let issuer = form.get(ISSUER).unwrap_or_default();
        let deadline = Deadline::after(PATIENCE);
        let server = &*permit.server().name;
        let started = match connections.start(permit, return_to, issuer, deadline).await {
            Ok(started) => started,
            Err(error) => return self.tell(Some(browser), about(&error, server)),
        };
        let url = &started.authorize_url;
        let host = Url::parse(url).ok().filter(is_web);
        let host = host.and_then(|url| url.host_str().map(str::to_owned));
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

    /// The way back from a provider. Whatever comes of it is told on another page, whose address says nothing.
    pub(super) async fn callback(&self) -> Result<Response<Full<Bytes>>, Refusal> {
        let browser = match self.browser().await {
            Ok(browser) => browser,
            Err(LoginError::SignedOut) => {
                let refusal = Refusal::from(Error::Browser);
                self.inner.recorder.refused(&refusal, &self.head.method);
                return self.tell(None, Flash::Failed(failed(&Error::Browser)));
            }
            Err(error) => return Err(error.into()),
        };
        let query = self.head.uri.query().unwrap_or_default();
        let query: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect();
        let (ended, server) = self.finish(&browser, &query).await;
        let mut answer = match &ended {
            Ok(finished) => match &finished.return_to {
                Some(url) => answer::see(url)?,
                None => {
                    let server = finished.server.to_string();
                    self.tell(Some(&browser), Flash::Connected { server })?
                }
            },
            Err(error) => {
                let mut failed = failed(error);
                failed.server = failed.server.or(server);
                self.tell(Some(&browser), Flash::Failed(failed))?
            }
        };
        // A flow that this was no answer to goes on.
        let waits = |error| matches!(error, Error::State | Error::Browser | Error::IssuerMismatch);
        let state = query.iter().find(|(name, _)| name == "state");
        if let (Some((_, state)), false) = (state, ended.is_err_and(waits)) {
            let digits = id::hex(&Sha256::digest(state)[..4]);
            let cookie = self.cookies().unbind(&digits);
            answer.headers_mut().append(header::SET_COOKIE, cookie);
        }
        Ok(answer)
    }

    /// How the flow ended that a provider's answer belongs to, and to which server it was.
    async fn finish(
        &self,
        browser: &Browser,
        query: &[(String, String)],
    ) -> (Result<Finished, Error>, Option<String>) {
        let owner = browser.owner();
        let callback = Callback {
            query,
            cookies: &self.cookies().bindings(),
            owner: &owner,
        };
        let mut server = None;
        let permit = |name: &str| {
            server = Some(name.to_owned());
            self.permit(browser, name).ok()
        };
        let (connections, deadline) = (&self.inner.connections, Deadline::after(PATIENCE));
        let ended = connections.finish(callback, permit, deadline).await;
        (ended, server)
    }

    pub(super) async fn disconnect_page(
        &self,
        server: &str,
    ) -> Result<Response<Full<Bytes>>, Refusal> {
        let browser = self.browser().await?;
        let permit = self.permit(&browser, server)?;
        let entry = self.entry(&permit).await;
        let proof = self.proof(&browser, &route::disconnect(server));
        let markup = pages::disconnect(&self.who(&browser), &entry, &proof);
        Ok(answer::page(StatusCode::OK, markup))
    }

    pub(super) async fn disconnect(
        &self,
        server: &str,
        form: &Form,
    ) -> Result<Response<Full<Bytes>>, Refusal> {
        let browser = self.proven(form).await?;
        let permit = self.permit(&browser, server)?;
        let deadline = Deadline::after(PATIENCE);
        let flash = match self.inner.connections.disconnect(&permit, deadline).await {
            Ok(revoked) => Flash::Disconnected {
                server: server.to_owned(),
                revoked: match revoked {
                    Revoked::Yes => "yes",
                    Revoked::No => "no",
                    Revoked::Unsupported => "unsupported",
                }
                .to_owned(),
            },
            Err(error) => about(&error, server),
        };
        self.tell(Some(&browser), flash)
    }

    /// What came of what was done last in this browser.
    pub(super) async fn result(&self) -> Result<Response<Full<Bytes>>, Refusal> {
        let browser = match self.browser().await {
            Ok(browser) => Some(browser),
            Err(LoginError::SignedOut) => None,
            Err(error) => return Err(error.into()),
        };
        let flash = self.told(browser.as_ref()).or_else(|| self.told(None));
        let Some(flash) = flash else {
            return answer::see("/");
        };
        let title = |server: &str| {
            let permit = browser.as_ref().map(|browser| self.permit(browser, server));
            permit?.ok()?.server().title.as_deref().map(str::to_owned)
        };
        let who = browser.as_ref().map(|browser| self.who(browser));
        let markup = pages::result(who.as_ref(), &flash, title);
        Ok(answer::page(StatusCode::OK, markup))
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

/// What did not work with a server.
fn about(error: &Error, server: &str) -> Flash {
    Flash::Failed(Failed {
        server: Some(server.to_owned()),
        ..failed(error)
    })
}

/// What did not work, with the provider's own words apart from ours.
fn failed(error: &Error) -> Failed {
    let code = error.code();
    let remedy = match error {
        // What agents are told speaks of a link; here is a button.
        Error::Denied { .. } => "try again and agree there, or ask the operator",
        _ => code.remedy(),
    };
    let (text, said) = match error {
        Error::Denied { error, description } => {
            let said = match description {
                Some(description) => format!("{error}: {description}"),
                None => error.clone(),
            };
            ("the authorization server refused".to_owned(), Some(said))
        }
        error => (error.to_string(), None),
    };
    Failed {
        code: code.as_str().to_owned(),
        remedy: remedy.to_owned(),
        text,
        said,
        server: server(error),
    }
}

fn server(error: &Error) -> Option<String> {
    match error {
        Error::Required { server }
        | Error::Reconnect { server, .. }
        | Error::MoreScopes { server, .. }
        | Error::Transient { server, .. }
        | Error::Unusable { server, .. }
        | Error::Client { server, .. }
        | Error::IssuerChanged { server, .. }
        | Error::Egress { server, .. } => Some(server.to_string()),
        Error::State
        | Error::Browser
        | Error::IssuerMismatch
        | Error::Denied { .. }
        | Error::Refused(_)
        | Error::Secret
        | Error::Records(_) => None,
    }
}
