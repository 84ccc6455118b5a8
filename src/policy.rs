//! Owns: who may use what: files become a checked snapshot, and [`decide()`] answers from it.
//! Imports: layer 0, `address`.
//! Never: does I/O; texts come in, verdicts go out.
//! Fails as: [`crate::table::Fault`]s for files; [`crate::refusal::Refusal`] for a decided no.

mod auth;
mod auth_file;
mod compile;
mod decide;
mod egress_file;
mod endpoint;
mod grants;
mod keys_file;
mod leg;
mod presets;
mod proxy;
mod server;
mod server_file;
mod snapshot;
mod words;

pub use auth::{
    Auth, Endpoints, OAuth, OnIssuerChange, Pkce, PreRegistered, Registration, Resource, Shared,
    TokenAuth,
};
pub use compile::{File, Inputs, Local, compile};
pub use decide::{Permit, Purpose, decide, decide_leg, may_use_builtin, same_for_all};
pub use endpoint::Endpoint;
pub use keys_file::{KeyEntry, keys};
pub use leg::LegPermit;
pub use presets::preset_of;
pub use proxy::{
    AllowRule, Denied, DenyRule, Head, HostPattern, Parent, Proxy, ProxyPermit, TunnelLimits,
    TunnelTls, Who, decide_egress, lints,
};
pub use server::{
    Access, Approval, Era, Mark, Pattern, Pin, ReadOnly, Relay, Server, ServerLimits, ToolOverride,
    Trust, Unasked,
};
pub use snapshot::{AccessMode, CallLimits, Key, Snapshot};
