//! Tools that are left out of lists because nobody could call them.

use std::sync::Arc;

/// Tells the operator of the first of them, each with the reason, and how many there are: one line for a page, whatever
/// it holds.
pub(super) fn warn(server: &str, unfit: &[(Arc<str>, String)]) {
    if let [(tool, reason), more @ ..] = unfit {
        let more = more.len();
        tracing::warn!(server, tool = %tool.escape_debug(), %reason, more, "a tool is left out of the list");
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Seek as _},
        sync::Arc,
    };

    use super::*;

    /// What is logged of a list.
    fn logged(unfit: &[(&str, &str)]) -> String {
        let unfit: Vec<_> = unfit
            .iter()
            .map(|(tool, reason)| (Arc::from(*tool), (*reason).to_owned()))
            .collect();
        let mut file = tempfile::tempfile().expect("a file");
        let subscriber = tracing_subscriber::fmt()
            .without_time()
            .with_ansi(false)
            .with_writer(Arc::new(file.try_clone().expect("a handle")))
            .finish();
        tracing::subscriber::with_default(subscriber, || warn("demo", &unfit));
        let mut text = String::new();
        file.rewind().expect("a file");
        file.read_to_string(&mut text).expect("text");
        text
    }

    #[test]
    fn a_list_is_warned_of_once() {
        assert_eq!(logged(&[]), "");
        assert_eq!(
            logged(&[("b\u{202e}", "first"), ("c", "second"), ("d", "third")]),
            concat!(
                " WARN tollgate::gateway::discovery::unfit: a tool is left out of the list server=\"demo\" ",
                "tool=b\\u{202e} reason=first more=2\n"
            )
        );
    }
}
