use super::*;
use crate::mcp::{Envelope, envelope::splice};

const LIST: &str = r##"{"jsonrpc":"2.0","id":1,"result":{ "tools" : [ {"name":"a","inputSchema":{"$ref":"#/x","n":1.0}} ,
    {"x-odd":{"k":1,"k":2},"name":"\u0062"},{"name":"c"} ],"nextCursor":"","ttlMs":5}}"##;

fn page(message: &str) -> Result<Vec<String>, Code> {
    let envelope = Envelope::upstream(message.as_bytes()).expect("a response");
    let result = envelope.result.expect("a result").whole;
    let page = Page::read(result, 3).map_err(|refusal| refusal.code)?;
    Ok(page
        .tools
        .into_iter()
        .map(|tool| tool.name.into_owned())
        .collect())
}

#[test]
fn tools_are_taken_out_and_the_rest_keeps_its_bytes() {
    let envelope = Envelope::upstream(LIST.as_bytes()).expect("a response");
    let page = Page::read(envelope.result.expect("a result").whole, 3).expect("a page");
    assert_eq!(page.next_cursor.map(|part| part.as_str()), Some("\"\""));
    assert_eq!(
        page.tools[1].definition.as_str(),
        r#"{"x-odd":{"k":1,"k":2},"name":"\u0062"}"#
    );
    assert_eq!(&LIST[page.tools[2].definition.range()], r#"{"name":"c"}"#);
    assert_eq!(page.filtered(|_| true), None);
    assert_eq!(page.filtered(|_| false).as_deref(), Some(b"[]".as_slice()));
    let array = page.filtered(|tool| tool.name != "b").expect("one went");
    let whole = splice(LIST.as_bytes(), &[(page.range(), &array)]);
    assert_eq!(
        String::from_utf8(whole).expect("text"),
        r##"{"jsonrpc":"2.0","id":1,"result":{ "tools" : [{"name":"a","inputSchema":{"$ref":"#/x","n":1.0}},{"name":"c"}],"nextCursor":"","ttlMs":5}}"##
    );
}

#[test]
fn lists_that_are_none_are_refused() {
    let of = |result: &str| page(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#));
    assert_eq!(
        of(r#"{"tools":[{"name":"a"},{"name":"a"}],"nextCursor":null}"#),
        Ok(vec!["a".into(), "a".into()])
    );
    assert_eq!(of(r#"{"tools":[]}"#), Ok(vec![]));
    for result in [
        "7",
        "{}",
        r#"{"tools":{}}"#,
        r#"{"tools":[7]}"#,
        r#"{"tools":[{}]}"#,
        r#"{"tools":[{"name":7}]}"#,
        r#"{"tools":[{"name":""}]}"#,
        r#"{"tools":[{"name":"a","name":"b"}]}"#,
        r#"{"tools":[],"tools":[]}"#,
        r#"{"tools":[],"nextCursor":7}"#,
    ] {
        assert_eq!(of(result), Err(Code::UpstreamMalformed), "{result}");
    }
    let long = format!(r#"{{"tools":[{{"name":"{}"}}]}}"#, "n".repeat(513));
    assert_eq!(of(&long), Err(Code::UpstreamMalformed));
    let many = format!(r#"{{"tools":[{}]}}"#, [r#"{"name":"a"}"#; 4].join(","));
    assert_eq!(of(&many), Err(Code::CatalogTooLarge));
}

#[test]
fn what_a_tool_mirrors_and_whether_it_can_be_called_is_read_with_it() {
    let unfit = |tool: &str, era| {
        let list = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{tool}]}}}}"#);
        let envelope = Envelope::upstream(list.as_bytes()).expect("a response");
        let page = Page::read(envelope.result.expect("a result").whole, 1).expect("a page");
        page.tools[0].unfit(era).map(|unfit| unfit.to_string())
    };
    const TASK: &str = "it can be called as a task only, and tasks are not relayed";
    for (tool, legacy, modern) in [
        (r#"{"name":"a"}"#, None, None),
        (
            r#"{"name":"a","x-mcp-header":7,"title":"x-mcp-header"}"#,
            None,
            None,
        ),
        (
            r#"{"name":"a","inputSchema":{"properties":{"x-mcp-header":{}}}}"#,
            None,
            None,
        ),
        (
            r#"{"name":"a","inputSchema":{},"inputSchema":{}}"#,
            None,
            None,
        ),
        (
            r#"{"name":"a","inputSchema":{"x-mcp-header":"B"}}"#,
            None,
            Some("`x-mcp-header` in `` is not on a property that only `properties` lead to"),
        ),
        (
            r#"{"name":"a","inputSchema":{"x-mcp-header":"B"},"inputSchema":{}}"#,
            None,
            Some("`inputSchema` stands twice in one object of an annotated schema"),
        ),
        (
            r#"{"name":"a","execution":{"taskSupport":"required"}}"#,
            Some(TASK),
            Some(TASK),
        ),
        (
            r#"{"name":"a","execution":{"taskSupport":"r\u0065quired"}}"#,
            Some(TASK),
            Some(TASK),
        ),
        (
            r#"{"execution":{"taskSupport":"optional"},"name":"a"}"#,
            None,
            None,
        ),
        (
            r#"{"execution":{"taskSupport":["required"]},"name":"a"}"#,
            None,
            None,
        ),
        (r#"{"execution":"required","name":"a"}"#, None, None),
    ] {
        assert_eq!(unfit(tool, Era::Legacy).as_deref(), legacy, "{tool}");
        assert_eq!(unfit(tool, Era::Modern).as_deref(), modern, "{tool}");
    }
}
