use proptest::prelude::*;

use super::*;

fn shown(text: &str) -> String {
    reveal(text, usize::MAX).expect("no bound")
}

#[test]
fn what_hides_text_is_shown_however_it_is_written() {
    for (text, expected) in [
        ("a\u{202e}b", r"a\\u{202E}b"),
        (r"a\u202eb", r"a\\u{202E}b"),
        (r"a\u202Eb", r"a\\u{202E}b"),
        ("a\u{200b}b", r"a\\u{200B}b"),
        ("\u{feff}x", r"\\u{FEFF}x"),
        (r"\u001b[31mred", r"\\u{001B}[31mred"),
        ("\u{9b}31m", r"\\u{009B}31m"),
        (r"\u009b31m", r"\\u{009B}31m"),
        (r"a\bc\f", r"a\\u{0008}c\\u{000C}"),
        ("x\u{7f}", r"x\\u{007F}"),
        ("so\u{ad}ft", r"so\\u{00AD}ft"),
        ("\u{e0049}\u{e0067}", r"\\u{E0049}\\u{E0067}"),
        (r"\udb40\udc49", r"\\u{E0049}"),
        ("a\u{fe01}", r"a\\u{FE01}"),
        (
            "😀\u{fe0f}\u{fe00}\u{e0100}",
            "😀\u{fe0f}\\\\u{FE00}\\\\u{E0100}",
        ),
        ("a\u{200d}b", r"a\\u{200D}b"),
        ("\u{2066}x\u{2069}", r"\\u{2066}x\\u{2069}"),
        ("x\u{200f}", r"x\\u{200F}"),
        ("\u{3164}", r"\\u{3164}"),
        (
            "\u{1F3F4}\u{e0067}\u{e0062}\u{e007f}",
            "\u{1F3F4}\\\\u{E0067}\\\\u{E0062}\\\\u{E007F}",
        ),
    ] {
        assert_eq!(shown(text), expected, "{text:?}");
        assert_eq!(find(&shown(text), 0), None, "{text:?}");
    }
}

#[test]
fn what_people_write_stays() {
    for text in [
        "plain text, “quoted” – with … and nbsp\u{a0}",
        r#"{"a":"line\nline\ttab\r\" \\u202e \\\\b \/"}"#,
        r"\u000a\u0009\u00e9\u4f60\ud83d\ude00",
        "你好，世界。こんにちは 한국어",
        "👩\u{200d}👩\u{200d}👧 👩\u{1F3FD}\u{200d}🚀 ❤\u{fe0f}\u{200d}🔥 1\u{fe0f}\u{20e3} ☎\u{fe0e}",
        r"\u2764\ufe0f\u200d\ud83d\udd25",
        "می\u{200c}خواهم",
        "क\u{94d}\u{200d}ष क\u{94d}\u{200c}ष",
        "שלום\u{200f}! \u{200e}مرحبا",
        "葛\u{e0100}城",
        "\u{1F3F4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
        "Ünïcödé façade",
        "",
    ] {
        assert_eq!(find(text, 0), None, "{text:?}");
        assert_eq!(shown(text), text);
        assert_eq!(mask(text), text);
    }
}

#[test]
fn long_runs_are_counted() {
    let text = format!("a{}b", "\u{e0041}".repeat(1000));
    let expected = format!("a{}[984 more hidden characters]b", r"\\u{E0041}".repeat(16));
    assert_eq!(shown(&text), expected);
    assert_eq!(mask(&text), "a?b");
}

#[test]
fn what_would_be_too_long_is_not_made() {
    assert_eq!(reveal("a\u{200b}b", 12), Some(r"a\\u{200B}b".to_owned()));
    assert_eq!(reveal("a\u{200b}b", 10), None);
}

#[test]
fn blocks_hide_nothing_at_their_borders() {
    for before in (BLOCK - 8)..(BLOCK + 3) {
        let plain = "a".repeat(before);
        for hidden in ["\u{202e}", r"\u202e", "\u{e0041}", "\u{85}", "\u{7f}"] {
            let text = format!("{plain}{hidden}z");
            let found = find(&text, 0).expect("it hides something");
            assert_eq!(found, before..before + hidden.len());
        }
        let text = format!("{plain}\u{7f}");
        assert_eq!(find(&text, 0), Some(before..before + 1));
    }
}

proptest! {
    /// Whatever it is, JSON stays JSON, nothing hidden is left, and what is not hidden is still there.
    #[test]
    fn strings_stay_strings(text in r#"[a\\"é😀\u{200b}\u{200d}\u{fe0f}\u{202e}\u{e0041}\u{85}\n\u{8}❤م]{0,24}"#) {
        let written = serde_json::to_string(&text).expect("a string");
        for made in [shown(&written), mask(&written)] {
            prop_assert_eq!(find(&made, 0), None);
            let read: String = serde_json::from_str(&made).expect("JSON");
            let visible = |text: &str| text.chars().filter(|found| "aé😀\"".contains(*found)).count();
            prop_assert_eq!(visible(&read), visible(&text));
        }
    }
}
