//! What a server shows of itself: lists, prompts and instructions, on their way into the catalogue and to the caller.

pub(super) mod discover;
pub(super) mod list;
pub(super) mod pinning;
pub(super) mod prompts;
mod review;
mod sheets;
mod unfit;
mod whole;
