//! What is asked: a request as it was understood, who is to be answered, what of it goes on, and its record.

pub(super) mod asked;
pub(super) mod asker;
mod context;
pub(super) mod entry;
pub(super) mod forward;
