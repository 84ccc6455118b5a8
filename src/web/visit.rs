//! One request to one route: who asks, and what the route does.

use std::sync::Arc;

use bytes::Bytes;
use http::{Response, header, request::Parts};
use http_body_util::Full;

use super::{
    Inner, answer,
    cookies::{Cookies, Name},
    flash::Flash,
    form::{self, Form},
    pages::Who,
    route::{self, Route},
    site::Site,
    style,
};
use crate::{
    identity::{Browser, LoginError},
    policy::{Permit, Snapshot, decide},
    refusal::Refusal,
};

/// A request, and the policy of its moment.
pub(super) struct Visit<'r> {
    pub(super) inner: &'r Inner,
    pub(super) site: &'r Site,
    pub(super) head: &'r Parts,
    pub(super) policy: Arc<Snapshot>,
}

impl Visit<'_> {
    pub(super) async fn get(&self, route: Route<'_>) -> Result<Response<Full<Bytes>>, Refusal> {
        match route {
            Route::Home => self.home().await,
            Route::Login => self.login_page().await,
            Route::SignIns => self.sign_ins().await,
            Route::Connect(server) => self.connect_page(server).await,
            Route::Disconnect(server) => self.disconnect_page(server).await,
            Route::Callback => self.callback().await,
            Route::Result => self.result().await,
            Route::Metadata => self.metadata(),
            Route::Style(digest) => style::sheet(digest),
            Route::SignOut => Err(route::wrong_method(&self.head.method)),
        }
    }

    pub(super) async fn post(
        &self,
        route: Route<'_>,
        form: &Form,
    ) -> Result<Response<Full<Bytes>>, Refusal> {
        match route {
            Route::Login => self.login(form).await,
            Route::SignOut => self.sign_out(form).await,
            Route::SignIns => self.revoke(form).await,
            Route::Connect(server) => self.connect(server, form).await,
            Route::Disconnect(server) => self.disconnect(server, form).await,
            Route::Home | Route::Callback | Route::Result | Route::Metadata | Route::Style(_) => {
                Err(route::wrong_method(&self.head.method))
            }
        }
    }

    pub(super) fn cookies(&self) -> Cookies<'_> {
        Cookies::of(&self.head.headers, self.site.is_https())
    }

    /// Who is signed in.
    ///
    /// # Errors
    ///
    /// Nobody is, or that cannot be found out.
    pub(super) async fn browser(&self) -> Result<Browser, LoginError> {
        let id = self.cookies().get(Name::Session);
        let id = id.ok_or(LoginError::SignedOut)?;
        self.inner.browsers.recognise(id, &self.policy).await
    }

    /// Who is signed in, and has sent a form that was made for this path.
    pub(super) async fn proven(&self, form: &Form) -> Result<Browser, Refusal> {
        let browser = self.browser().await?;
        form.prove(&self.inner.mac, &browser, self.head.uri.path())?;
        Ok(browser)
    }

    /// The proof for the forms of a path.
    pub(super) fn proof(&self, browser: &Browser, path: &str) -> String {
        form::proof(&self.inner.mac, browser, path)
    }

    /// What every page of this browser shows.
    pub(super) fn who(&self, browser: &Browser) -> Who {
        Who {
            user: browser.user.clone(),
            proof: self.proof(browser, route::SIGN_OUT),
        }
    }

    /// What this browser may do with a server.
    pub(super) fn permit(&self, browser: &Browser, server: &str) -> Result<Permit, Refusal> {
        decide(&self.policy, browser.subject(), server)
    }

    /// On to the page that tells what came of it.
    pub(super) fn tell(
        &self,
        browser: Option<&Browser>,
        flash: Flash,
    ) -> Result<Response<Full<Bytes>>, Refusal> {
        let value = flash.seal(&self.inner.mac, browser);
        let mut answer = answer::see(route::RESULT)?;
        let cookie = self.cookies().set(Name::Result, &value);
        answer.headers_mut().append(header::SET_COOKIE, cookie);
        Ok(answer)
    }

    /// What is to be told, if anything.
    pub(super) fn told(&self, browser: Option<&Browser>) -> Option<Flash> {
        let cookies = self.cookies();
        let value = cookies.get(Name::Result)?;
        Flash::open(value, &self.inner.mac, browser)
    }
}
