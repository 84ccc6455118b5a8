//! What holds for every first flight.

use proptest::{collection::vec, prelude::*, sample::Index};

use super::*;

/// What comes of `input` when it arrives up to each of `ends`, and then whole.
fn fed(input: &[u8], ends: impl IntoIterator<Item = usize>) -> Result<Option<Hello>, HelloError> {
    let mut reader = HelloReader::default();
    for end in ends.into_iter().chain([input.len()]) {
        match reader.read(&input[..end]) {
            Ok(None) => {}
            result => return result,
        }
    }
    Ok(None)
}

fn parts() -> impl Strategy<Value = Parts> {
    let name = "[a-zA-Z0-9.-]{1,30}".prop_map(|name| (0, server_name(&[(0, name.as_bytes())])));
    let extension = prop_oneof![
        3 => (1_u16..60, vec(any::<u8>(), 0..40)),
        1 => (Just(0xfe0d), vec(any::<u8>(), 0..40)),
        3 => name,
    ];
    let session = vec(any::<u8>(), 0..34);
    (session, vec(extension, 0..5)).prop_map(|(session, extensions)| Parts {
        session,
        extensions,
        ..Parts::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn neither_records_nor_pieces_make_a_difference(parts in parts(), length in 1_usize..200, mut ends in vec(any::<Index>(), 0..20)) {
        let whole = read(&records(&parts.message(), 16_384));
        let input = records(&parts.message(), length);
        ends.sort_by_key(|end| end.index(input.len()));
        let ends = ends.iter().map(|end| end.index(input.len()));
        prop_assert_eq!(&fed(&input, ends), &whole);
        prop_assert_eq!(&fed(&input, 0..input.len()), &whole);
    }

    #[test]
    fn broken_ones_are_alike_in_pieces(parts in parts(), length in 1_usize..200, at in any::<Index>(), byte in any::<u8>()) {
        let mut input = records(&parts.message(), length);
        let at = at.index(input.len());
        input[at] = byte;
        prop_assert_eq!(fed(&input, 0..input.len()), read(&input));
    }

    #[test]
    fn what_is_accepted_asks_for_the_same_when_it_is_written_again(parts in parts()) {
        if let Ok(Some(hello)) = read(&records(&parts.message(), 16_384)) {
            let again = Parts::named(hello.name.as_str()).message();
            prop_assert_eq!(read(&records(&again, 16_384)), Ok(Some(Hello { ech: false, ..hello.clone() })));
            prop_assert_eq!(hello.check(&Host::Name(hello.name.clone())), Ok(()));
        }
    }

    #[test]
    fn nothing_panics(bytes in vec(any::<u8>(), 0..600), length in 1_usize..300) {
        for input in [bytes.clone(), records(&bytes, length), records(&message(&bytes), length)] {
            prop_assert_eq!(fed(&input, 0..input.len()), read(&input));
        }
        let parts = Parts { extensions: vec![(0, bytes)], ..Parts::default() };
        let _ = read(&records(&parts.message(), length));
    }
}
