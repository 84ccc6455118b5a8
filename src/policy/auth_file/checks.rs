//! Knobs of `mode = "oauth"` seen together.

use crate::{
    policy::{OAuth, Registration, TokenAuth},
    table::Table,
};

/// Whether a combination is a mistake, the key that it is told of, and what to do.
struct Row(bool, &'static str, &'static str);

/// Knobs that need one another, and knobs that leave one another without an effect.
pub(super) fn check(table: &Table<'_>, knobs: &OAuth) {
    let rows = about_client(table, knobs)
        .into_iter()
        .chain(about_places(table));
    for Row(_, key, message) in rows.filter(|row| row.0) {
        table.fault(table.place_of(key).fault(message));
    }
    check_scopes(table, knobs);
}

/// Knobs under which a preset was laid: it may want a client, too.
pub(super) fn check_presets(table: &Table<'_>, knobs: &OAuth) {
    let lacks_client = knobs.registration == Registration::PreRegistered && !table.has("client_id");
    if lacks_client && !table.has("registration") {
        let presets = knobs.presets.join(", ");
        let message = format!(
            "needs `client_id`: this provider registers nobody by itself (preset {presets}); register Tollgate there, and \
             add its client_id"
        );
        table.fault(table.place_of("issuer").fault(message));
    }
}

fn about_client(table: &Table<'_>, knobs: &OAuth) -> [Row; 6] {
    let (client, secret) = (table.has("client_id"), table.has("client_secret"));
    let (method, registration) = (knobs.token_auth, knobs.registration);
    [
        Row(
            client && !table.has("issuer"),
            "client_id",
            "needs `issuer`: a client is known to one authorization server and shown to no other; add it",
        ),
        Row(
            secret && !client,
            "client_secret",
            "needs `client_id`; add it, or remove the secret",
        ),
        Row(
            registration == Registration::PreRegistered && !client,
            "registration",
            "needs `client_id` and `issuer`; add them, or use another registration",
        ),
        Row(
            client && matches!(registration, Registration::Cimd | Registration::Dcr),
            "client_id",
            "has no effect beside this registration; remove it, or set registration = \"pre-registered\"",
        ),
        Row(
            secret && method == Some(TokenAuth::None),
            "token_auth_method",
            "with `none` the client_secret is never sent; remove one of the two",
        ),
        Row(
            client && !secret && matches!(method, Some(TokenAuth::Basic | TokenAuth::Post)),
            "token_auth_method",
            "needs `client_secret`; add it, or use `none`",
        ),
    ]
}

fn about_places(table: &Table<'_>) -> [Row; 3] {
    let fixed = |beside| table.has("endpoints") && table.has(beside);
    [
        Row(
            table.has("endpoints") && !table.has("issuer"),
            "endpoints",
            "needs `issuer`: what is kept for people is kept by its name, and answers are held against it; add it",
        ),
        Row(
            fixed("metadata_url"),
            "metadata_url",
            "has no effect beside `endpoints`, which stand in place of metadata; keep one of the two",
        ),
        Row(
            fixed("trusted_issuer"),
            "trusted_issuer",
            "has no effect beside `endpoints`, which stand in place of metadata; remove it",
        ),
    ]
}

fn check_scopes(table: &Table<'_>, knobs: &OAuth) {
    let (Some(scopes), Some(most)) = (&knobs.scopes, &knobs.scopes_max) else {
        return;
    };
    for scope in scopes.iter().filter(|scope| !most.contains(scope)) {
        let message = format!("`{scope}` is not in `scopes_max`; add it there, or remove it here");
        table.fault(table.place_of("scopes").fault(message));
    }
}
