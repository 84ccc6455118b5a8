use std::{collections::BTreeSet, sync::Arc, time::UNIX_EPOCH};

use super::*;
use crate::{
    audit::{Kind, OutcomeKind, Phase, RecordTunnel},
    refusal::Code,
    subject::Scopes,
};

fn text(record: &Record) -> String {
    let mut text = String::from_utf8(body(record)).expect("UTF-8");
    text.push('}');
    text
}

fn record() -> Record {
    let time = UNIX_EPOCH + Duration::from_micros(1_795_989_600_000_042);
    let mut record = Record::new(time, Kind::Call, Phase::Outcome);
    record.id = Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001);
    record
}

/// Every field is set.
fn full() -> Record {
    let mut record = record().ended(OutcomeKind::Refused, Some(Code::AddressBlocked));
    record.subject = Some(Arc::new(Subject {
        tenant: "default".into(),
        agent: "ci".into(),
        user: "ann".into(),
        groups: Arc::from([Arc::from("eng"), Arc::from("ops")]),
        scopes: Scopes::CALL,
        conversation: Some("c1".into()),
        turn: Some("t1".into()),
        acting: Some("app".into()),
        evidence: "key:1".into(),
    }));
    record.server = Some("jira".into());
    record.method = Some("tools/call".into());
    record.tool = Some("create_issue".into());
    record.rules = vec!["private_10".into()];
    record.generation = Some(3);
    record.target = Some(RecordTarget {
        host: "jira.corp.example".into(),
        port: 443,
        addresses: vec![
            "10.0.0.1".parse().expect("IPv4"),
            "::1".parse().expect("IPv6"),
        ],
        pinned: Some(true),
    });
    record.args_bytes = Some(17);
    record.args_keys = vec!["summary".into()];
    record.result_bytes = Some(0);
    record.result_cut = Some(5);
    record.result_is_error = Some(false);
    record.tunnel = Some(RecordTunnel {
        bytes_in: 7,
        bytes_out: 8,
        closed_by: "target",
    });
    record.revoked_upstream = Some("no");
    record.times = Some(9);
    record.took = Some(Duration::from_nanos(12_034_567));
    record.took_upstream = Some(Duration::from_micros(999));
    record.request_id = Some(Uuid::from_u128(2));
    record
}

#[test]
fn a_full_record_has_every_field_in_its_place() {
    assert_eq!(
        text(&full()),
        concat!(
            r#"{"id":"01900000-0000-7000-8000-000000000001","time":"2026-11-29T22:00:00.000042Z","#,
            r#""kind":"call","phase":"outcome","outcome":"refused","code":"egress.address_blocked","#,
            r#""tenant":"default","agent":"ci","user":"ann","groups":["eng","ops"],"#,
            r#""conversation":"c1","turn":"t1","acting":"app","server":"jira","#,
            r#""method":"tools/call","tool":"create_issue","rules":["private_10"],"generation":3,"#,
            r#""target":{"host":"jira.corp.example","port":443,"addresses":["10.0.0.1","::1"],"pinned":true},"#,
            r#""args":{"bytes":17,"keys":["summary"]},"result":{"bytes":0,"cut":5,"is_error":false},"#,
            r#""tunnel":{"in":7,"out":8,"closed_by":"target"},"#,
            r#""revoked_upstream":"no","times":9,"#,
            r#""ms":{"total":12.034,"upstream":0.999},"request_id":"00000000-0000-0000-0000-000000000002"}"#,
        )
    );
}

#[test]
fn what_is_unknown_is_absent() {
    let mut record = record();
    record.kind = Kind::Request;
    record.phase = Phase::Decision;
    assert_eq!(
        text(&record),
        concat!(
            r#"{"id":"01900000-0000-7000-8000-000000000001","time":"2026-11-29T22:00:00.000042Z","#,
            r#""kind":"request","phase":"decision"}"#,
        )
    );
}

#[test]
fn an_attackers_text_is_bounded_and_shows_what_it_is() {
    for (written, expected) in [
        ("a\"b\\c", r#""a\"b\\c""#),
        (
            "a\nb\r\u{0}\u{7f}\u{9b}",
            r#""a\u000ab\u000d\u0000\u007f\u009b""#,
        ),
        (
            "pay\u{202e}gpj\u{200b}\u{feff}",
            r#""pay\u202egpj\u200b\ufeff""#,
        ),
        ("\u{e0041}", r#""\udb40\udc41""#),
        ("naïve 日本 🦀", "\"naïve 日本 🦀\""),
    ] {
        let mut record = record();
        record.tool = Some(written.into());
        let line = text(&record);
        assert!(line.ends_with(&format!("\"tool\":{expected}}}")), "{line}");
        let value: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(value["tool"], written);
    }
}

#[test]
fn long_texts_and_lists_are_cut() {
    let mut record = record();
    record.tool = Some("é".repeat(1 << 20).into());
    record.method = Some("m".repeat(256).into());
    record.rules = vec!["\u{e0041}".repeat(300).into(); 1_000];
    record.args_keys = vec!["k".repeat(65); 33];
    let line = text(&record);
    let value: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(value["tool"], format!("{}…", "é".repeat(256)));
    assert_eq!(value["method"], "m".repeat(256));
    assert_eq!(value["rules"].as_array().map(Vec::len), Some(32));
    assert_eq!(value["args"]["keys"].as_array().map(Vec::len), Some(32));
    assert_eq!(value["args"]["keys"][0], format!("{}…", "k".repeat(64)));
    assert!(line.len() < 1 << 18, "{}", line.len());
}

#[test]
fn a_time_that_cannot_be_written_does_not_lose_the_record() {
    let mut record = record();
    record.time = UNIX_EPOCH + Duration::from_secs(1 << 60);
    assert!(text(&record).contains(r#""time":"1970-01-01T00:00:00.000000Z""#));
}

/// The schema is what audit consumers program against: same members, same order, same words.
#[test]
fn the_schema_names_every_member_in_order() {
    let schema = include_str!("../../../deploy/audit.schema.json");
    let parsed: serde_json::Value = serde_json::from_str(schema).expect("JSON");
    let record: serde_json::Value = serde_json::from_str(&text(&full())).expect("JSON");
    let chained = ["seq", "prev", "hash"];
    let members: BTreeSet<_> = record
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .chain(chained)
        .collect();
    let named = |schema: &serde_json::Value| -> BTreeSet<String> {
        let properties = schema["properties"].as_object().expect("properties");
        properties.keys().cloned().collect()
    };
    assert!(named(&parsed).iter().map(String::as_str).eq(members));
    for inner in ["target", "args", "result", "tunnel", "ms"] {
        let members = record[inner]
            .as_object()
            .expect("an object")
            .keys()
            .cloned();
        assert_eq!(
            named(&parsed["properties"][inner]),
            members.collect(),
            "{inner}"
        );
    }
    let line = text(&full());
    let mut places: Vec<_> = named(&parsed)
        .into_iter()
        .filter(|member| !chained.contains(&&**member))
        .map(|member| {
            let here = line.find(&format!("\"{member}\":")).expect("in the record");
            (
                here,
                schema
                    .find(&format!("\n    \"{member}\": {{"))
                    .expect("in the schema"),
            )
        })
        .collect();
    places.sort_unstable();
    assert!(places.is_sorted_by_key(|(_, schema)| *schema));
    assert!(
        parsed["properties"]["kind"]["enum"]
            .as_array()
            .expect("words")
            .iter()
            .eq(Kind::ALL.map(Kind::as_str))
    );
}
