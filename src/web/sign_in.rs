//! Signing in by a link, signing out, and the sign-ins of a user.

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, header};
use http_body_util::Full;
use url::form_urlencoded;

use super::{answer, cookies::Name, flash::Flash, form::Form, pages, route, visit::Visit};
use crate::{identity::LoginError, refusal::Refusal};

/// The field, and the parameter of the link, that holds a link's token.
pub(super) const TOKEN: &str = "token";
/// The field that names a sign-in.
pub(super) const SIGN_IN: &str = "sign-in";

impl Visit<'_> {
    /// Shows whom a link signs in, and a button. Whatever fetches links ahead of people presses no button, so that it
    /// does not use them up.
    pub(super) async fn login_page(&self) -> Result<Response<Full<Bytes>>, Refusal> {
        let query = self.head.uri.query().unwrap_or_default();
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        let token = pairs.find(|(name, _)| name == TOKEN);
        let (_, token) = token.ok_or(LoginError::Link)?;
        let owner = self.inner.browsers.invited(&token, &self.policy).await?;
        Ok(answer::page(StatusCode::OK, pages::login(&token, &owner)))
    }

    pub(super) async fn login(&self, form: &Form) -> Result<Response<Full<Bytes>>, Refusal> {
        let token = form.get(TOKEN).ok_or(LoginError::Link)?;
        let browsers = &self.inner.browsers;
        let (id, browser) = browsers.sign_in(token, &self.policy).await?;
        // The sign-in that this browser had until now ends with its cookie.
        if let Ok(before) = self.browser().await {
            browsers.sign_out(&before).await?;
        }
        self.inner.recorder.did(&browser, "sign_in");
        let mut answer = answer::see("/")?;
        let cookies = self.cookies();
        let headers = answer.headers_mut();
        headers.append(header::SET_COOKIE, cookies.set(Name::Session, &id));
        headers.append(header::SET_COOKIE, cookies.clear(Name::Result));
        Ok(answer)
    }

    pub(super) async fn sign_out(&self, form: &Form) -> Result<Response<Full<Bytes>>, Refusal> {
        let browser = self.proven(form).await?;
        self.inner.browsers.sign_out(&browser).await?;
        self.inner.recorder.did(&browser, "sign_out");
        let mut answer = self.tell(None, Flash::SignedOut)?;
        self.forget(answer.headers_mut());
        Ok(answer)
    }

    pub(super) async fn sign_ins(&self) -> Result<Response<Full<Bytes>>, Refusal> {
        let browser = self.browser().await?;
        let sign_ins = self.inner.browsers.sign_ins(&browser).await?;
        let proof = self.proof(&browser, route::SIGN_INS);
        let markup = pages::sign_ins(&self.who(&browser), &sign_ins, &proof);
        Ok(answer::page(StatusCode::OK, markup))
    }

    /// Ends one of the user's sign-ins.
    pub(super) async fn revoke(&self, form: &Form) -> Result<Response<Full<Bytes>>, Refusal> {
        let browser = self.proven(form).await?;
        let name = form.get(SIGN_IN).unwrap_or_default();
        // One that is gone already is what was wanted.
        if self.inner.browsers.revoke(&browser, name).await? {
            self.inner.recorder.did(&browser, "sign_in.revoked");
        }
        answer::see(route::SIGN_INS)
    }

    fn forget(&self, headers: &mut HeaderMap) {
        let cookie = self.cookies().clear(Name::Session);
        headers.append(header::SET_COOKIE, cookie);
    }
}
