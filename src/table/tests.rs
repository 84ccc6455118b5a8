use std::time::Duration;

use super::*;

/// The faults of reading `text`, one a line.
fn faults<T>(text: &str, reader: impl FnOnce(&Table<'_>) -> T) -> String {
    let (_, faults) = read("x.toml", text, reader);
    let lines: Vec<String> = faults.iter().map(Fault::to_string).collect();
    lines.join("\n")
}

#[test]
fn every_fault_is_kept_with_line_and_column_in_characters() {
    let text = "name = 5\n[limits]\n\"größe\" = 1\ntimeout = \"5 s\"\nbytes = -1\n";
    let found = faults(text, |root| {
        root.text("name");
        let limits = root.table("limits").expect("there");
        limits.duration("timeout", Duration::ZERO..=Duration::from_secs(120));
        limits.integer("bytes", 1..=10);
    });
    assert_eq!(
        found,
        "\
x.toml:1:8: name: found the integer 5, expected a string
x.toml:4:11: limits.timeout: found `5 s`, expected a duration such as \"250ms\", \"5s\", \"1m\" or \"1h\"
x.toml:5:9: limits.bytes: found -1, expected 1 to 10
x.toml:3:1: limits.\"größe\": unknown key; expected one of `timeout`, `bytes`"
    );
}

#[test]
fn columns_count_characters_and_not_bytes() {
    let found = faults("a = [\"ä\", 5]\n", |root| root.texts("a"));
    assert_eq!(
        found,
        "x.toml:1:11: a[1]: found the integer 5, expected a string"
    );
}

#[test]
fn what_a_file_says_cannot_break_or_rearrange_the_line_of_its_fault() {
    let text = "a = \"\"\"\n5\t\"s\"\\u001b[2J\\u202e\"\"\"\n\"x\\ny\" = 1\n";
    let found = faults(text, |root| {
        root.duration("a", Duration::ZERO..=Duration::from_secs(1));
    });
    assert_eq!(
        found,
        "\
x.toml:1:5: a: found `5\\t\"s\"\\u{1b}[2J\\u{202e}`, expected a duration such as \"250ms\", \"5s\", \"1m\" or \"1h\"
x.toml:3:1: \"x\\ny\": unknown key; expected `a`"
    );
    let whole = Fault::whole("x.toml", "it's `a\nb`").to_string();
    assert_eq!(whole, "x.toml: it's `a\\nb`");
}

#[test]
fn an_unknown_key_is_reported_with_what_was_probably_meant() {
    let found = faults("titel = \"x\"\nzzz = 1\n", |root| {
        root.text("title");
        root.text("url");
        root.unavailable(&["tilel"]);
    });
    assert_eq!(
        found,
        "\
x.toml:1:1: titel: unknown key; did you mean `title`?
x.toml:2:1: zzz: unknown key; expected one of `title`, `url`"
    );
}

#[test]
fn unknown_keys_are_found_in_lists_of_tables_and_named_tables() {
    let text = "[[key]]\nuser = \"a\"\nusre = 1\n[tools.\"a.b\"]\nhiden = true\n";
    let found = faults(text, |root| {
        for key in root.tables("key") {
            key.text("user");
        }
        for (_, tool) in root.named_tables("tools") {
            tool.flag("hidden");
        }
    });
    assert_eq!(
        found,
        "\
x.toml:3:1: key[0].usre: unknown key; did you mean `user`?
x.toml:5:1: tools.\"a.b\".hiden: unknown key; did you mean `hidden`?"
    );
}

#[test]
fn a_table_may_be_asked_more_than_once() {
    let found = faults("[listen]\nagents = \"a\"\nops = \"b\"\n", |root| {
        root.table("listen").expect("there").text("agents");
        root.table("listen").expect("there").text("ops");
    });
    assert_eq!(found, "");
}

#[test]
fn text_that_is_no_toml_gives_the_faults_of_its_syntax_alone() {
    let found = faults("a = \nb = \"x\nc = 5\n", |root| root.text("c"));
    assert_eq!(
        found,
        "\
x.toml:1:5: string values must be quoted, expected literal string
x.toml:2:7: invalid basic string, expected `\"`"
    );
    let found = faults("a = 1\na = 2\n", |root| root.integer("a", 0..=9));
    assert_eq!(found, "x.toml:2:1: duplicate key");
}

#[test]
fn deep_nesting_is_refused_and_not_followed() {
    let text = format!("a = {}{}", "[".repeat(50_000), "]".repeat(50_000));
    assert!(faults(&text, |root| root.texts("a")).contains("x.toml:1:"));
}

#[test]
fn durations_and_integers_are_read_in_every_form() {
    let text = "ms = \"250ms\"\ns = \"5s\"\nm = \"1m\"\nh = \"2h\"\nhex = 0x10\nsep = 1_000\n";
    let (values, found) = read("x.toml", text, |root| {
        let most = Duration::from_secs(9000);
        let time = |key| {
            root.duration(key, Duration::ZERO..=most)
                .map(|time| time.as_millis())
        };
        let number = |key| root.integer(key, 0..=u64::MAX);
        let times = [time("ms"), time("s"), time("m"), time("h")];
        (times, [number("hex"), number("sep")])
    });
    assert_eq!(found, []);
    assert_eq!(
        values,
        Some((
            [Some(250), Some(5_000), Some(60_000), Some(7_200_000)],
            [Some(16), Some(1_000)]
        ))
    );
}

#[test]
fn bounds_are_told_in_the_form_that_is_written() {
    let found = faults("call = \"5m\"\nsmall = \"0s\"\n", |root| {
        let bounds = || Duration::from_millis(1)..=Duration::from_secs(120);
        root.duration("call", bounds());
        root.duration("small", bounds());
    });
    assert_eq!(
        found,
        "\
x.toml:1:8: call: found 5m, expected 1ms to 2m
x.toml:2:9: small: found 0s, expected 1ms to 2m"
    );
}

#[test]
fn what_this_version_lacks_is_said_to_be_lacking() {
    let text = "pin = \"file\"\ntrace = true\nmode = \"oauth\"\nweb = \"x\"\nbuiltin = false\nform = \"nnoe\"\n";
    let found = faults(text, |root| {
        root.unavailable(&["pin"]);
        root.only_false(&["trace", "builtin"]);
        root.only_empty(&["web"]);
        root.choice("mode", &[("none", Some(())), ("oauth", None)]);
        root.choice("form", &[("none", Some(()))]);
    });
    assert_eq!(
        found,
        "\
x.toml:1:7: pin: this key is not available in this version; remove it
x.toml:2:9: trace: `true` is not available in this version; use `false`, or remove the key
x.toml:4:7: web: this key is not available in this version; use \"\", or remove it
x.toml:3:8: mode: `oauth` is not available in this version; use `none`
x.toml:6:8: form: found `nnoe`, expected `none`; did you mean `none`?"
    );
}

#[test]
fn a_place_outlives_the_reading() {
    let (item, _) = read("x.toml", "\n  url = \"u\"\n", |root| {
        root.required_text("url")
    });
    let fault = item
        .flatten()
        .expect("read")
        .fault("leads nowhere; correct it");
    assert_eq!(
        fault.to_string(),
        "x.toml:2:9: url: leads nowhere; correct it"
    );
    let missing = faults("[a]\n", |root| {
        root.table("a").expect("there").required_text("url")
    });
    assert_eq!(missing, "x.toml:1:1: a: `url` is missing; add it");
}
