//! The pages: `listen` drives their connections, and the operator's command line has them make a link.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;

use super::{
    control::{Answer, Login},
    core::Core,
};
use crate::{
    listen::{self, Peer},
    refusal::Code,
    web::Web,
};

impl listen::Handle for Web {
    type Body = Full<Bytes>;

    async fn handle(&self, request: Request<Incoming>, _: Peer) -> Response<Full<Bytes>> {
        self.answer(request).await
    }

    fn fault(&self, code: Code, detail: &str) {
        Self::fault(self, code, detail);
    }
}

/// Makes a link that signs a browser in.
pub(super) async fn login(core: &Core, tenant: Option<&str>, user: Option<&str>) -> Answer {
    let Some(web) = core.web.get() else {
        let off = "the pages are off; set listen.web in tollgate.toml and restart";
        return Answer::Failed(vec![off.to_owned()]);
    };
    let link = web.invite(tenant, user).await;
    core.record_admin("login", link.is_ok());
    match link {
        Ok(link) => Answer::Login(Login {
            url: link.url,
            tenant: link.invitation.owner.tenant.to_string(),
            user: link.invitation.owner.user.to_string(),
            lasts: link.invitation.lasts,
        }),
        Err(error) => Answer::Failed(vec![error.to_string()]),
    }
}
