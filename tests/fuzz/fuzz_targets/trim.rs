//! A result that is cut fits, and is a result; what was cut can be read on to its end; nothing hidden stays hidden.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tollgate::budget::{
    Form, Reader, Terms, Text, Why, bounded, clean, hidden, muted, piece, spoken, trim,
};
use tollgate::mcp::scan::{Rules, check};
use tollgate_fuzz::first_line;

const HANDLE: &str = "0123456789abcdef0123456789abcdef";

// The bytes of the first line: the form, how large the result may be, why it is cut, whether it is kept.
fuzz_target!(|input: &[u8]| {
    let Some((settings, result)) = first_line(input) else {
        return;
    };
    if check(result.as_bytes(), Rules::Loose).is_err() {
        return;
    }
    let setting = |at: usize| usize::from(settings.get(at).copied().unwrap_or_default());
    let terms = Terms {
        form: [Form::Tool, Form::Resource, Form::Prompt][setting(0) % 3],
        max: 1024 + 16 * setting(1),
        why: if setting(2) % 4 == 3 {
            Why::Turn
        } else {
            Why::Result
        },
        handle: (setting(3) % 2 == 0).then_some(HANDLE),
        reader: Reader {
            tool: "tollgate__read_result",
            endpoint: None,
        },
        meta: r#""io.tollgate/untrusted":{"server":"s"}"#,
    };
    check_cut(result, &terms);
    check_pieces(result, terms.form, 16 + setting(1));
    check_strings(result, 64 + setting(1));
});

fn check_cut(result: &str, terms: &Terms<'_>) {
    let cut = trim(result, terms);
    assert!(
        cut.text.len() <= terms.max,
        "{} of {}",
        cut.text.len(),
        terms.max
    );
    assert!(cut.omitted <= result.len());
    assert_eq!(check(cut.text.as_bytes(), Rules::Loose), Ok(()));
    // Numbers and surrogates that have no value stay as they are.
    let (Ok(read), Ok(given)) = (value(&cut.text), value(result)) else {
        return;
    };
    let list = match terms.form {
        Form::Tool => "content",
        Form::Resource => "contents",
        Form::Prompt => "messages",
    };
    assert!(read[list].is_array());
    assert_eq!(read["_meta"]["io.tollgate/untrusted"]["server"], "s");
    if let Some(offset) = read["_meta"]["io.tollgate/cut"]["offset"].as_u64() {
        assert!(offset <= result.len() as u64);
    }
    if terms.form == Form::Tool && read["isError"] != true {
        assert_ne!(given["isError"], true);
        assert_eq!(read["structuredContent"], given["structuredContent"]);
    }
}

fn value(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text)
}

/// Reading on ends, goes forward, and stays within the result.
fn check_pieces(result: &str, form: Form, length: usize) {
    let (mut next, mut before) = (Some(0), None);
    while let Some(offset) = next {
        assert!(before.is_none_or(|before| offset > before));
        let found = piece(result, form, offset, length);
        assert!(found.start <= found.end && found.end <= result.len());
        (next, before) = (found.next, Some(offset));
    }
    let found = piece(result, form, length * 7, length);
    assert!(found.start <= found.end && found.end <= result.len());
}

fn check_strings(text: &str, max: usize) {
    let is_json = |text: &str| check(text.as_bytes(), Rules::Loose).is_ok();
    for kind in [Text::Message, Text::Result, Text::Error] {
        match bounded(kind, text, max) {
            Ok(Some(shown)) => {
                assert!(shown.len() <= max && is_json(&shown), "{shown}");
                if kind == Text::Error {
                    assert_eq!(hidden::find(&shown, 0), None);
                }
            }
            Ok(None) => assert!(text.len() <= max && hidden::find(text, 0).is_none()),
            Err(_) => assert!(text.len() > max),
        }
    }
    let shown = clean(text, max);
    assert_eq!(hidden::find(&shown, 0), None);
    assert!(shown.len() <= max.max(text.len()) && is_json(&shown));
    assert_eq!(hidden::find(text, 0).is_some(), shown != text);
    assert!(hidden::find(text, 0).is_none() || hidden::may_be_in(text.as_bytes()));
    assert!(spoken(text.as_bytes()) <= text.len());
    let muted = muted(text);
    assert!(muted.len() <= text.len() && is_json(&muted));
}
