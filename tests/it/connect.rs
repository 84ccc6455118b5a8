//! Users' connections to servers.

mod calls;
