//! Tools that are left out of lists because nobody could call them.

use crate::mcp::{Era, tools::Page};

/// Tells the operator of the first of them and how many there are: one line for a page, whatever it holds.
pub(super) fn warn(server: &str, era: Era, page: &Page<'_>) {
    let mut unfit = page
        .tools
        .iter()
        .filter_map(|tool| Some((&tool.name, tool.unfit(era)?)));
    if let Some((tool, reason)) = unfit.next() {
        let more = unfit.count();
        tracing::warn!(server, %tool, %reason, more, "a tool is left out of the list");
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Seek as _},
        sync::Arc,
    };

    use super::*;
    use crate::mcp::Envelope;

    /// What is logged of a list.
    fn logged(era: Era, tools: &str) -> String {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{tools}]}}}}"#);
        let envelope = Envelope::upstream(text.as_bytes()).expect("a response");
        let page = Page::read(envelope.result.expect("a result").whole, 9).expect("a page");
        let mut file = tempfile::tempfile().expect("a file");
        let subscriber = tracing_subscriber::fmt()
            .without_time()
            .with_ansi(false)
            .with_writer(Arc::new(file.try_clone().expect("a handle")))
            .finish();
        tracing::subscriber::with_default(subscriber, || warn("demo", era, &page));
        let mut text = String::new();
        file.rewind().expect("a file");
        file.read_to_string(&mut text).expect("text");
        text
    }

    #[test]
    fn a_list_is_warned_of_once() {
        const FIT: &str = r#"{"name":"a"}"#;
        const ODD: &str =
            r#"{"name":"b","inputSchema":{"properties":{"p\r":{"x-mcp-header":""}}}}"#;
        const TASK: &str = r#"{"name":"c","execution":{"taskSupport":"required"}}"#;
        assert_eq!(logged(Era::Modern, FIT), "");
        assert_eq!(logged(Era::Legacy, ODD), "");
        assert_eq!(
            logged(Era::Modern, &[FIT, ODD, TASK, ODD].join(",")),
            concat!(
                " WARN tollgate::gateway::unfit: a tool is left out of the list server=\"demo\" tool=b ",
                "reason=`x-mcp-header` of `p\\r` cannot be part of a header's name more=2\n"
            )
        );
    }
}
