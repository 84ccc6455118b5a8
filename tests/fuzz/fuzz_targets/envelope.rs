//! A message that is accepted means the same to another JSON parser, and nothing in it stands twice.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, value::RawValue};
use tollgate::mcp::{
    Envelope, Kind,
    envelope::{member_cut, splice},
};
use tollgate_fuzz::keys;

fuzz_target!(|body: &[u8]| {
    let loose = Envelope::upstream(body);
    if let Ok(envelope) = &loose {
        let _valid: &RawValue = serde_json::from_slice(body).expect("JSON");
        check_parts(envelope, body);
    }
    match Envelope::inbound(body) {
        Ok(envelope) => {
            assert_eq!(Ok(&envelope), loose.as_ref(), "strict rules accept less");
            check_values(&envelope, body);
            check_cuts(&envelope, body);
        }
        Err(rejection) => {
            assert!(!rejection.refusal.public.is_empty());
            // The id is answered as it stands.
            if let Some(id) = &rejection.id {
                let _id: &RawValue = serde_json::from_str(id).expect("JSON");
            }
        }
    }
});

/// Every part stands where it says.
fn check_parts(envelope: &Envelope<'_>, body: &[u8]) {
    let id = envelope.id.map(|id| id.part());
    let params = envelope.params.as_ref().map(|params| params.whole);
    let result = envelope.result.as_ref().map(|result| result.whole);
    let error = envelope.error.as_ref().map(|error| error.whole);
    for part in [id, params, result, error].into_iter().flatten() {
        assert_eq!(&body[part.range()], part.as_str().as_bytes());
        let _part: &RawValue = serde_json::from_str(part.as_str()).expect("JSON");
    }
}

/// Another parser reads the same values at the same keys.
fn check_values(envelope: &Envelope<'_>, body: &[u8]) {
    let message: Value = serde_json::from_slice(body).expect("JSON");
    assert_eq!(
        keys::written(body),
        keys::held(&message),
        "a key stands twice"
    );
    let read = |text: &str| serde_json::from_str::<Value>(text).ok();
    let get = |key: &str| message.get(key).cloned();
    assert_eq!(envelope.id.and_then(|id| read(id.as_str())), get("id"));
    let params = envelope.params.as_ref();
    assert_eq!(
        params.and_then(|params| read(params.whole.as_str())),
        get("params")
    );
    let result = envelope.result.as_ref();
    assert_eq!(
        result.and_then(|result| read(result.whole.as_str())),
        get("result")
    );
    let error = envelope.error.as_ref();
    assert_eq!(
        error.and_then(|error| read(error.whole.as_str())),
        get("error")
    );
    let method = get("method");
    assert_eq!(
        method.as_ref().and_then(Value::as_str).unwrap_or_default(),
        envelope.method
    );
    let kind = match (method, get("id")) {
        (Some(_), Some(_)) => Kind::Request,
        (Some(_), None) => Kind::Notification,
        (None, _) => Kind::Response,
    };
    assert_eq!(envelope.kind, kind);
    if let (Some(params), Some(value)) = (params, get("params")) {
        let name = params.name.and_then(|part| read(part.as_str()));
        assert_eq!(name.as_ref(), value.get("name"));
        let arguments = params.arguments.and_then(|part| read(part.as_str()));
        assert_eq!(arguments.as_ref(), value.get("arguments"));
        let meta = params
            .meta
            .as_ref()
            .and_then(|meta| read(meta.whole.as_str()));
        assert_eq!(meta.as_ref(), value.get("_meta"));
    }
}

/// A member that is cut out is gone, and nothing else.
fn check_cuts(envelope: &Envelope<'_>, body: &[u8]) {
    let Some(params) = &envelope.params else {
        return;
    };
    for (key, member) in [
        ("task", params.task),
        ("requestState", params.request_state),
    ] {
        let Some(member) = member else {
            continue;
        };
        let left = splice(body, &[(member_cut(body, member.range()), b"")]);
        let mut expected: Value = serde_json::from_slice(body).expect("JSON");
        let held = expected["params"].as_object_mut().expect("an object");
        held.remove(key).expect("the member");
        assert_eq!(
            serde_json::from_slice::<Value>(&left).expect("JSON"),
            expected
        );
    }
}
