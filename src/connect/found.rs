//! What was found out about a server, and as whom it is used: its authorization server, pinned, and Tollgate's client
//! there. Both are kept, so that no person waits for either twice.

mod asked;
pub(super) mod clients;
pub(super) mod discovered;
