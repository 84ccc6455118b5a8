//! Owns: (being written).
