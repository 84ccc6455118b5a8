use super::*;
use crate::mcp::{Envelope, envelope::splice};

const LIST: &str = r##"{"jsonrpc":"2.0","id":1,"result":{ "tools" : [ {"name":"a","inputSchema":{"$ref":"#/x","n":1.0}} ,
    {"x-odd":{"k":1,"k":2},"name":"\u0062"},{"name":"c"} ],"nextCursor":"","ttlMs":5}}"##;

fn page(list: List, result: &str) -> Result<Vec<String>, Code> {
    let message = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
    let envelope = Envelope::upstream(message.as_bytes()).expect("a response");
    let result = envelope.result.expect("a result").whole;
    let page = Page::read(result, list, 3).map_err(|refusal| refusal.code)?;
    let names = page.items.into_iter().map(|item| item.name.into_owned());
    Ok(names.collect())
}

#[test]
fn items_meet_their_fates_and_the_rest_keeps_its_bytes() {
    let envelope = Envelope::upstream(LIST.as_bytes()).expect("a response");
    let page = Page::read(envelope.result.expect("a result").whole, List::Tools, 3);
    let page = page.expect("a page");
    assert_eq!(page.next_cursor.map(|part| part.as_str()), Some("\"\""));
    assert_eq!(
        page.items[1].definition.as_str(),
        r#"{"x-odd":{"k":1,"k":2},"name":"\u0062"}"#
    );
    assert_eq!(&LIST[page.items[2].definition.range()], r#"{"name":"c"}"#);
    let keep = Fate::<&str>::Keep;
    let kept = [keep.clone(), keep.clone(), keep.clone()];
    assert_eq!(page.rewritten(&kept, None), None);
    let none = [Fate::<&str>::Drop, Fate::Drop, Fate::Drop];
    assert_eq!(page.rewritten(&none, None).as_deref(), Some("[]"));
    let fates = [keep, Fate::Drop, Fate::Replace(r#"{"name":"C"}"#)];
    let array = page.rewritten(&fates, None).expect("some changed");
    let whole = splice(LIST.as_bytes(), &[(page.range(), array.as_bytes())]);
    assert_eq!(
        String::from_utf8(whole).expect("text"),
        r##"{"jsonrpc":"2.0","id":1,"result":{ "tools" : [{"name":"a","inputSchema":{"$ref":"#/x","n":1.0}},{"name":"C"}],"nextCursor":"","ttlMs":5}}"##
    );
}

#[test]
fn each_list_names_its_items_in_its_own_way() {
    for (list, result) in [
        (List::Tools, r#"{"tools":[{"name":"a"}],"prompts":7}"#),
        (List::Prompts, r#"{"prompts":[{"name":"a"}],"tools":7}"#),
        (
            List::Templates,
            r#"{"resourceTemplates":[{"name":"b","uriTemplate":"a"}]}"#,
        ),
    ] {
        assert_eq!(page(list, result), Ok(vec!["a".into()]), "{result}");
    }
}

#[test]
fn lists_that_are_none_are_refused() {
    let of = |result: &str| page(List::Tools, result);
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
