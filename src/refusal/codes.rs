//! The table of codes: one row each, and nothing else decides how a refusal is shown.

use super::{Fault, Shape};

macro_rules! codes {
    ($($variant:ident $text:literal $fault:ident $status:literal $shape:expr, $remedy:literal;)*) => {
        /// A stable reason; the texts are listed in `policy/README.md` and never change their meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Code {
            $(#[doc = concat!("`", $text, "`: ", $remedy, ".")] $variant,)*
        }

        impl Code {
            /// Every code, in the order of a call.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The stable text, `room.reason`.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }

            /// Who has to change something.
            pub fn fault(self) -> Fault {
                match self { $(Self::$variant => Fault::$fault),* }
            }

            /// The HTTP status of an answer that is not a tool result.
            pub fn status(self) -> u16 {
                match self { $(Self::$variant => $status),* }
            }

            /// How the answer carries it.
            pub fn shape(self) -> Shape {
                match self { $(Self::$variant => $shape),* }
            }

            /// The next step, as a clause.
            pub fn remedy(self) -> &'static str {
                match self { $(Self::$variant => $remedy),* }
            }
        }
    };
}

use Shape::{Http, Rpc, Tool};

codes! {
    BadHead "listen.bad_head" Caller 400 Http, "send a well-formed HTTP/1.1 request";
    HeadTooLarge "listen.head_too_large" Caller 431 Http, "send fewer or shorter headers";
    SlowHead "listen.slow_head" Caller 408 Http, "send the whole request head without a pause";
    SlowBody "listen.slow_body" Caller 408 Http, "send the whole body without a pause";
    BodyTooLarge "listen.body_too_large" Caller 413 Http, "send less, or let the operator raise limits.request_bytes";
    BodyBroken "listen.body_broken" Caller 400 Http, "send the body that the headers announce";
    BadHost "listen.bad_host" Caller 403 Http, "connect by the address the operator gave";
    BadOrigin "listen.bad_origin" Caller 403 Http, "let the operator add the origin to listen.allowed_origins";
    NotFound "listen.not_found" Caller 404 Http, "use /mcp/NAME with the name of a server";
    MethodNotAllowed "listen.method_not_allowed" Caller 405 Http, "use POST; GET and DELETE serve sessions of the older protocol";
    Overloaded "listen.overloaded" Internal 503 Http, "try again later, and reuse open connections";
    ListenFailed "listen.failed" Internal 503 Http, "let the operator correct the listen table";
    StartFailed "app.start_failed" Internal 503 Http, "let the operator read the message and correct what it names";
    PolicyRejected "app.policy_rejected" Policy 503 Http, "run `tollgate check`; the policy before stays in force";
    Draining "listen.draining" Internal 503 Http, "try again; this process is shutting down";
    TlsFailed "listen.tls_failed" Caller 400 Http, "connect with TLS 1.2 or newer and trust the certificate of this listener";
    ClientGone "listen.client_gone" Caller 499 Http, "stay connected until the answer has come";

    EvidenceMissing "identity.missing" Caller 401 Http, "send the agent key as `Authorization: Bearer tg_…`";
    EvidenceInvalid "identity.invalid" Caller 401 Http, "ask the operator for a valid agent key";
    EvidenceExpired "identity.expired" Caller 401 Http, "ask the operator for a new agent key";
    ScopeMissing "identity.scope" Caller 403 Http, "use a key with the scope that the request needs";
    ActingRefused "identity.acting_refused" Caller 403 Http, "leave Tollgate-User and Tollgate-Groups out, or use a key that may act for others";
    SignedOut "identity.signed_out" Caller 401 Http, "run `tollgate login` where Tollgate runs, and open the link that it prints in this browser";
    LoginLink "identity.login_link" Caller 403 Http, "run `tollgate login` (with agent keys, `tollgate login --user NAME`) again; each link signs in once, within five minutes";
    LoginUser "identity.login_user" Caller 403 Http, "name a user that the policy knows";

    ProxyTarget "tunnel.bad_target" Caller 400 Http, "ask the proxy for `CONNECT host:port` or for an absolute http:// URL";
    TargetTooLong "tunnel.target_too_long" Caller 414 Http, "ask for a shorter URL";
    HostMismatch "tunnel.host_mismatch" Caller 421 Http, "send the host and port of the target as `Host`, once";
    MethodRefused "tunnel.method_refused" Caller 405 Http, "use another method";
    ProxyCredentialMissing "tunnel.credential_missing" Caller 407 Http, "put the agent key and its user into the proxy URL, http://USER:KEY@HOST:PORT, or send it as `Proxy-Authorization: Bearer KEY`";
    ProxyCredentialInvalid "tunnel.credential_invalid" Caller 407 Http, "put the agent key behind the colon of the proxy URL, http://USER:KEY@HOST:PORT; before the colon stands its own user, the user it acts for, or nothing";
    PrivateConversation "tunnel.private" Caller 403 Http, "send what belongs to a private conversation nowhere; the proxy serves the others";
    TunnelLimit "tunnel.limit" Caller 429 Http, "close tunnels that are no longer used, or ask the operator to raise tunnels.per_caller";
    TunnelRate "tunnel.rate" Caller 429 Http, "open tunnels more slowly and reuse them, or ask the operator to raise tunnels.per_second";
    EarlyData "tunnel.early_data" Caller 400 Http, "send nothing into a tunnel before the proxy has answered 200";
    SlowHello "tunnel.slow_hello" Caller 408 Http, "begin TLS as soon as the tunnel is open";
    NotTls "tunnel.not_tls" Caller 403 Http, "speak TLS in the tunnel, or ask the operator for tls = \"opaque\"";
    HelloInvalid "tunnel.hello_invalid" Caller 403 Http, "begin the tunnel with a well-formed TLS ClientHello";
    SniMissing "tunnel.sni_missing" Caller 403 Http, "send the host of the tunnel as TLS server name, or ask the operator for tls = \"opaque\"";
    SniMismatch "tunnel.sni_mismatch" Caller 403 Http, "open a tunnel to the host that TLS names";

    ContentType "mcp.content_type" Caller 415 Http, "send `Content-Type: application/json`";
    Accept "mcp.accept" Caller 406 Http, "accept both application/json and text/event-stream";
    HeaderDuplicate "mcp.header_duplicate" Caller 400 Rpc(-32020), "send each protocol header once";
    ParseError "mcp.parse_error" Caller 400 Rpc(-32700), "send one valid UTF-8 JSON object";
    InvalidRequest "mcp.invalid_request" Caller 400 Rpc(-32600), "send one JSON-RPC 2.0 request or notification";
    Batch "mcp.batch" Caller 400 Rpc(-32600), "send one message a request; batches are not supported";
    Ambiguous "mcp.ambiguous" Caller 400 Rpc(-32600), "send JSON that every parser reads alike";
    HeaderMismatch "mcp.header_mismatch" Caller 400 Rpc(-32020), "make the headers say what the body says";
    MetaMissing "mcp.meta_missing" Caller 400 Rpc(-32602), "send the required `_meta` fields";
    VersionUnsupported "mcp.version_unsupported" Caller 400 Rpc(-32022), "use a supported protocol version";
    MethodUnknown "mcp.method_unknown" Caller 404 Rpc(-32601), "use a method that the server's capabilities name";
    InvalidParams "mcp.invalid_params" Caller 400 Rpc(-32602), "send the parameters that the method asks for";
    RoundInvalid "mcp.round_invalid" Caller 200 Rpc(-32602), "send the request anew, without `requestState` and `inputResponses`";
    SessionRequired "mcp.session_required" Caller 400 Rpc(-32600), "send `initialize` first and then the session id it answers with";
    SessionUnknown "mcp.session_unknown" Caller 404 Rpc(-32600), "start a new session with `initialize`";
    SessionLimit "mcp.session_limit" Caller 429 Rpc(-32600), "end sessions that are no longer used";
    AlreadyListening "mcp.already_listening" Caller 409 Rpc(-32600), "use the stream that is open, or close it first";
    ResumeUnknown "mcp.resume_unknown" Caller 400 Rpc(-32600), "send the request again if its answer is still needed, or listen without `Last-Event-ID`";
    StreamLimit "mcp.stream_limit" Caller 429 Rpc(-32600), "close streams that are no longer listened to";
    DuplicateId "mcp.duplicate_id" Caller 400 Rpc(-32600), "give each request in flight an id of its own";

    ServerUnknown "policy.server_unknown" Caller 404 Http, "use the name of a server that the operator registered and opened to you";

    ToolUnknown "catalog.tool_unknown" Caller 200 Rpc(-32602), "call tools/list for the tools that are offered";
    CatalogTooLarge "catalog.too_large" Upstream 200 Tool, "ask the operator whether the server should offer so many tools";

    ApprovalUnavailable "approval.unavailable" Policy 200 Tool, "ask the operator to accept the tool as read-only, or to set approval = \"never\" for it";

    RecordUnavailable "audit.unavailable" Internal 200 Tool, "try again once the operator has made room for records";

    Drifted "catalog.drifted" Policy 200 Tool, "let the operator look at it with `tollgate pin SERVER --diff` and accept it";
    Unreviewed "catalog.unreviewed" Policy 200 Tool, "let the operator look at it with `tollgate pin SERVER --diff` and accept it";
    PinsUnusable "catalog.pins_unusable" Internal 200 Tool, "let the operator run `tollgate pin SERVER`, which says how to put it right";
    ArgumentsInvalid "catalog.arguments_invalid" Caller 200 Tool, "correct the arguments and call again";
    SchemaUnusable "catalog.schema_unusable" Upstream 200 Tool, "ask the server's operator to correct the tool's input schema";
    StoreUnavailable "store.unavailable" Internal 200 Tool, "let the operator see to the state folder, then try again";
    ConnectRequired "connect.required" Caller 200 Tool, "open the link and connect there, then call again";
    ConnectAgain "connect.reconnect" Caller 200 Tool, "open the link and connect again, then repeat the call";
    ConnectShared "connect.shared_secret" Policy 200 Tool, "show this to the operator, who sets the secret with `tollgate secret set SERVER` where Tollgate runs";
    ConnectScopes "connect.more_permissions" Caller 200 Tool, "open the link and agree to the permissions, then repeat the call";
    ConnectTransient "connect.unavailable" Upstream 200 Tool, "try again later; the connection is kept";
    ConnectUnusable "connect.unusable" Policy 200 Tool, "show this to the operator, who can set what is missing under auth in the server's file";
    ConnectClient "connect.client" Policy 200 Tool, "ask the operator to register a client and to set auth.client_id and auth.issuer";
    ConnectIssuerChanged "connect.issuer_changed" Policy 200 Tool, "ask the operator whether the new authorization server is right, and connect again on the page";
    ConnectMixUp "connect.mix_up" Policy 200 Tool, "let the operator find out whose endpoint that is; auth.issuer in the server's file vouches for it";
    ConnectState "connect.state" Caller 400 Http, "begin again on the connect page";
    ConnectBrowser "connect.browser" Caller 403 Http, "begin again on the connect page, in this browser and as this user";
    ConnectIssuerMismatch "connect.issuer_mismatch" Upstream 403 Http, "begin again on the connect page, and tell the operator if this repeats";
    ConnectDenied "connect.denied" Upstream 200 Tool, "begin again on the connect page, or ask the operator";
    ConnectSecret "connect.secret" Caller 400 Http, "enter the secret as its provider shows it, without line breaks";
    WebNotFound "web.not_found" Caller 404 Http, "go to the first page, which links to all others";
    WebMethod "web.method" Caller 405 Http, "open the page, and press its button there";
    WebForm "web.form" Caller 403 Http, "open the page again, and press its button there";
    WebCrossSite "web.cross_site" Caller 403 Http, "open the page itself, and press its button there";
    RecordForged "vault.record" Internal 200 Tool, "show this to the operator: a sealed record was changed or moved, and the person has to connect again";
    VaultKey "vault.key" Internal 503 Http, "restore the keyring that belongs to this database; nothing was changed";
    VaultOlder "vault.older" Internal 503 Http, "let the operator look at the audit log, then run `tollgate vault accept-restore`";
    KeyringUnusable "vault.keyring" Internal 503 Http, "let the operator read the message and correct what it names";

    BadTarget "egress.bad_target" Policy 200 Tool, "ask the operator to correct the server's url";
    NameBlocked "egress.name_blocked" Policy 200 Tool, "ask the operator whether a private grant should name this host";
    HostNotAllowed "egress.host_not_allowed" Policy 403 Http, "ask the operator whether egress.toml should allow this host and port";
    RequestNotAllowed "egress.request_not_allowed" Policy 403 Http, "use a method and a path that egress.toml allows here, or ask the operator to widen its rule";
    OwnAddress "egress.own_address" Caller 403 Http, "name the host in NO_PROXY, so that it is asked directly";
    AddressBlocked "egress.address_blocked" Policy 200 Tool, "show this to the operator";
    NameUnresolved "egress.name_unresolved" Upstream 200 Tool, "check the server's host name";
    DnsFailed "egress.dns_failed" Upstream 200 Tool, "try again; the name servers did not answer usefully";
    DnsTimeout "egress.dns_timeout" Upstream 200 Tool, "try again; the name servers did not answer in time";
    ConnectFailed "egress.connect_failed" Upstream 200 Tool, "try again later; the server does not accept connections";
    ConnectTimeout "egress.connect_timeout" Upstream 200 Tool, "try again later; the server does not answer";
    Exhausted "egress.exhausted" Internal 200 Tool, "try again later; this machine has no room for another connection";
    ParentFailed "egress.parent_failed" Upstream 200 Tool, "show this to the operator; the parent proxy refused or could not be used";
    ParentChanged "egress.parent_changed" Policy 403 Http, "connect again; the way out leads through another parent proxy now";
    UpstreamTls "egress.tls_failed" Upstream 200 Tool, "ask the operator to check the server's certificate or to add its root with ca";
    RedirectRefused "egress.redirect_refused" Upstream 200 Tool, "ask the operator to register the final address; redirects are never followed";
    FirstByteTimeout "egress.first_byte_timeout" Upstream 200 Tool, "try again later; the server took the request and did not answer in time; the result is incomplete: do not invent it";
    IdleTimeout "egress.idle_timeout" Upstream 200 Tool, "try again later; the server stopped sending; the result is incomplete: do not invent it";
    CallTimeout "egress.call_timeout" Upstream 200 Tool, "ask for less at once, or let the operator raise the server's timeout; the result is incomplete: do not invent it";
    ResponseHeadInvalid "egress.response_head_invalid" Upstream 200 Tool, "the server's answer is not valid HTTP; ask its operator";
    ResponseTooLarge "egress.response_too_large" Upstream 200 Tool, "ask for less at once; the result is incomplete: do not invent it";
    ResponseEncoding "egress.response_encoding" Upstream 200 Tool, "the server's answer cannot be decoded; ask its operator";
    AnswersOverloaded "egress.overloaded" Internal 200 Tool, "try again when fewer large answers are on their way; the result is incomplete: do not invent it";
    ConnectionLost "egress.connection_lost" Upstream 200 Tool, "the connection broke; whether the call took effect is not known; the result is incomplete: do not invent it";

    UpstreamStatus "upstream.status" Upstream 200 Tool, "the server refused the request; ask its operator";
    UpstreamUnauthorized "upstream.unauthorized" Upstream 200 Tool, "ask the operator to set what the server wants under auth in its file, or to see to its permissions there";
    UpstreamContentType "upstream.content_type" Upstream 200 Tool, "the server's url does not lead to an MCP endpoint; ask the operator to correct it";
    UpstreamMalformed "upstream.malformed" Upstream 200 Tool, "the server's answer is not valid; ask its operator";
    UpstreamWrongId "upstream.wrong_id" Upstream 200 Tool, "the server answered another request; ask its operator";
    UpstreamExtraAnswer "upstream.extra_answer" Upstream 200 Tool, "the server answered more than once; ask its operator";
    UpstreamNoAnswer "upstream.no_answer" Upstream 200 Tool, "the server ended its stream without an answer; whether the call took effect is not known; the result is incomplete: do not invent it";
    UpstreamEventTooLarge "upstream.event_too_large" Upstream 200 Tool, "ask for less at once; the result is incomplete: do not invent it";
    UpstreamSessionLost "upstream.session_lost" Upstream 404 Rpc(-32600), "start a new session with `initialize`";
    UpstreamSessionsOnly "upstream.sessions_only" Upstream 400 Rpc(-32600), "start a session with `initialize`; this server speaks the session protocol only";
    UpstreamRevision "upstream.revision" Upstream 400 Rpc(-32602), "ask the operator for a newer version of the server; sessions speak 2025-03-26 to 2025-11-25";
    UpstreamEra "upstream.era" Upstream 400 Rpc(-32022), "connect with a protocol version that the server speaks";

    Rounds "gateway.rounds" Upstream 200 Tool, "the server asks and never completes; ask its operator";
    CallsLimit "gateway.calls_limit" Caller 200 Tool, "wait for the calls that run before making more";
    ServerBusy "gateway.server_busy" Upstream 200 Tool, "try again when fewer calls to the server run";
    ServerFailing "gateway.server_failing" Upstream 200 Tool, "try again later, or use another tool";
    HandleUnknown "budget.handle_unknown" Caller 200 Tool, "call the tool again, or answer from what there is";
    TurnSpent "budget.turn_spent" Caller 200 Tool, "answer from what there is; do not invent the rest";
    Cancelled "gateway.cancelled" Caller 200 Tool, "the call was stopped at the client's request";
}
