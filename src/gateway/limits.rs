//! How much may be under way at once: calls, which wait for one another in line, and what is refused at once.

pub(super) mod lanes;
pub(super) mod seats;
