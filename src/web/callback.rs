//! The way back from providers, and what came of it.

use bytes::Bytes;
use http::{Response, StatusCode, header};
use http_body_util::Full;
use sha2::{Digest, Sha256};
use url::form_urlencoded;

use super::{answer, connect::PATIENCE, flash::Flash, pages, visit::Visit};
use crate::{
    connect::{Callback, Error, Finished},
    deadline::Deadline,
    id,
    identity::{Browser, LoginError},
    refusal::Refusal,
};

impl Visit<'_> {
    /// The way back from a provider. Whatever comes of it is told on another page, whose address says nothing.
    pub(super) async fn callback(&self) -> Result<Response<Full<Bytes>>, Refusal> {
        let browser = match self.browser().await {
            Ok(browser) => browser,
            Err(LoginError::SignedOut) => {
                let refusal = Refusal::from(Error::Browser);
                self.inner.recorder.refused(&refusal, &self.head.method);
                return self.tell(None, Flash::about(&Error::Browser, None));
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
            Err(error) => self.tell(Some(&browser), Flash::about(error, server.as_deref()))?,
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
}
