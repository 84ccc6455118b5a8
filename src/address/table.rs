//! The table of special-purpose ranges.
