//! Owns: (being written).

pub mod load;
pub mod reload;
