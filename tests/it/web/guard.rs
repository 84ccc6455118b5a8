//! What does not come from a browser on our own pages changes nothing.

use http::Request;
use http_body_util::Full;

use super::house::{House, LOCAL, field};

#[tokio::test]
async fn another_host_is_sent_to_the_public_one() {
    let house = House::local().await;
    for host in [
        "localhost:8703",
        "evil.example",
        "127.0.0.1:9000",
        "127.0.0.1",
    ] {
        for method in ["GET", "HEAD"] {
            let request = Request::builder()
                .method(method)
                .uri("/oauth/callback?code=c&state=s")
                .header("host", host);
            let page = house.send(request.body(Full::default()).unwrap()).await;
            assert_eq!(page.status, 308, "{host}");
            assert_eq!(
                page.header("location"),
                "http://127.0.0.1:8703/oauth/callback?code=c&state=s"
            );
        }
        let request = Request::post("/login").header("host", host);
        let page = house.send(request.body(Full::default()).unwrap()).await;
        assert_eq!(page.status, 403, "{host}");
        assert!(page.words().contains("listen.bad_host"), "{host}");
    }
    assert!(
        house
            .metrics()
            .contains("tollgate_web_refusals_total{code=\"listen.bad_host\"} 4")
    );
    assert!(
        house
            .metrics()
            .contains("tollgate_web_requests_total{status_class=\"3xx\"} 8")
    );
}

#[tokio::test]
async fn a_form_needs_its_proof() {
    let house = House::local().await;
    let mut ann = house.visitor().await;
    let mut other = house.visitor().await;
    let own = ann.get("/connect/demo").await.fields("/connect/demo");
    let proof = own
        .iter()
        .find(|(name, _)| name == "proof")
        .unwrap()
        .1
        .clone();
    assert_eq!(proof.len(), 64);
    let foreign = other.get("/connect/demo").await.fields("/connect/demo");
    let sibling = ann.get("/connect/key").await.fields("/connect/key");
    let mut changed = proof.clone();
    changed.replace_range(0..1, if proof.starts_with('0') { "1" } else { "0" });
    let without: Vec<_> = own
        .iter()
        .filter(|(name, _)| name != "proof")
        .cloned()
        .collect();
    let with = |value: &str| [without.clone(), vec![field("proof", value)]].concat();
    let cases = [
        ("missing", without.clone()),
        ("empty", with("")),
        ("changed", with(&changed)),
        ("cut", with(&proof[..62])),
        ("another sign-in's", foreign),
        ("another form's", sibling),
        (
            "twice",
            [own.clone(), vec![field("proof", &proof)]].concat(),
        ),
    ];
    for (case, fields) in &cases {
        let page = ann.post("/connect/demo", fields).await;
        assert_eq!(page.status, 403, "{case}");
        assert!(page.words().contains("web.form"), "{case}");
    }
    for path in ["/sign-out", "/sign-ins", "/disconnect/demo"] {
        assert_eq!(ann.post(path, &own).await.status, 403, "{path}");
    }
    // Nothing was begun, and the sign-in stands.
    let asked = house.provider.asked();
    assert!(
        !asked
            .iter()
            .any(|ask| ask.to_string().contains("/register"))
    );
    assert_eq!(ann.post("/connect/demo", &own).await.status, 200);
    // After the sign-out the same form is nobody's.
    let mut gone = ann.clone();
    ann.press("/", "/sign-out").await;
    assert_eq!(gone.post("/connect/demo", &own).await.status, 401);
}

#[tokio::test]
async fn a_form_comes_from_our_own_site() {
    let house = House::local().await;
    let mut ann = house.visitor().await;
    let fields = ann.get("/connect/demo").await.fields("/connect/demo");
    for (name, value) in [
        ("origin", "http://evil.example"),
        ("origin", "http://127.0.0.1:8704"),
        ("origin", "https://127.0.0.1:8703"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
    ] {
        let mut request = ann.form("/connect/demo", &fields);
        request.headers_mut().insert(name, value.parse().unwrap());
        let page = house.send(request).await;
        assert_eq!(page.status, 403, "{name}: {value}");
        assert!(page.words().contains("web.cross_site"), "{name}: {value}");
    }
    // The button of a link too: nobody is signed in as somebody else by another page.
    let link = house.web.invite(None, None).await.unwrap().invitation.token;
    let mut stranger = house.stranger();
    let mut request = stranger.form("/login", &[field("token", &link)]);
    request
        .headers_mut()
        .insert("origin", "http://evil.example".parse().unwrap());
    assert_eq!(house.send(request).await.status, 403);
    stranger.sign_in(&link).await;
    // A program says nothing of where it comes from.
    let mut request = ann.form("/connect/demo", &fields);
    request.headers_mut().remove("origin");
    request.headers_mut().remove("sec-fetch-site");
    assert_eq!(house.send(request).await.status, 200);
}

#[tokio::test]
async fn only_whole_forms_of_a_sane_size_are_read() {
    let house = House::local().await;
    let mut ann = house.visitor().await;
    let fields = ann.get("/connect/key").await.fields("/connect/key");
    for kind in [
        "application/json",
        "multipart/form-data; boundary=x",
        "text/plain",
        "",
    ] {
        let mut request = ann.form("/connect/key", &fields);
        request
            .headers_mut()
            .insert("content-type", kind.parse().unwrap());
        let page = house.send(request).await;
        assert_eq!(page.status, 403, "{kind}");
    }
    for bytes in [40_000, 2 << 20] {
        let mut large = fields.clone();
        large.push(field("secret", &"x".repeat(bytes)));
        let page = house.send(ann.form("/connect/key", &large)).await;
        assert_eq!(page.status, 413, "{bytes}");
        assert!(
            page.words()
                .contains("The form is larger than 32768 bytes."),
            "{}",
            page.words()
        );
    }
    let mut with_charset = ann.form("/connect/key", &fields);
    let kind = "application/x-www-form-urlencoded; charset=UTF-8";
    with_charset
        .headers_mut()
        .insert("content-type", kind.parse().unwrap());
    let page = ann.send(with_charset).await;
    assert_eq!((page.status, page.header("location")), (303, "/result"));
}

#[tokio::test]
async fn each_path_serves_its_methods() {
    let house = House::local().await;
    let mut ann = house.visitor().await;
    for (method, path, allow) in [
        ("POST", "/", "GET, HEAD"),
        ("PUT", "/", "GET, HEAD"),
        ("DELETE", "/connect/demo", "GET, HEAD, POST"),
        ("GET", "/sign-out", "POST"),
        ("HEAD", "/oauth/callback", "GET"),
        ("POST", "/oauth/callback", "GET"),
        ("POST", "/result", "GET, HEAD"),
        ("BREW", "/login", "GET, HEAD, POST"),
        ("OPTIONS", "/login", "GET, HEAD, POST"),
    ] {
        let request = ann.request(method, path).body(Full::default()).unwrap();
        let page = ann.send(request).await;
        assert_eq!(
            (page.status, page.header("allow")),
            (405, allow),
            "{method} {path}"
        );
    }
    for path in [
        "/nothing",
        "/connect/",
        "/connect/a/b",
        "/style-0000.css",
        "/api/v1/x",
        "/favicon.ico",
    ] {
        let page = ann.get(path).await;
        assert_eq!(page.status, 404, "{path}");
        assert_eq!(
            page.words(),
            "Nothing is here Nothing is served here. Go to the first page, which links to all others. web.not_found Go to \
             the first page",
            "{path}"
        );
    }
    let head = ann.request("HEAD", "/").body(Full::default()).unwrap();
    let page = ann.send(head).await;
    assert_eq!((page.status, &*page.body), (200, ""));
    let length: usize = page.header("content-length").parse().unwrap();
    assert!(length > 1000, "{length}");
}

#[tokio::test]
async fn every_answer_is_shielded() {
    let house = House::local().await;
    let mut ann = house.visitor().await;
    let mut stranger = house.stranger();
    let pages = [
        ann.get("/").await,
        ann.get("/connect/demo").await,
        ann.get("/nothing").await,
        ann.get("/oauth/callback").await,
        ann.begin().await,
        stranger.get("/").await,
    ];
    for page in &pages {
        assert_eq!(
            page.header("content-security-policy"),
            "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
        );
        assert_eq!(page.header("x-content-type-options"), "nosniff");
        assert_eq!(page.header("cache-control"), "no-store");
        assert_eq!(page.header("cross-origin-opener-policy"), "same-origin");
        assert_eq!(page.header("cross-origin-resource-policy"), "same-origin");
        assert!(!page.body.contains("<script"));
        assert!(!page.body.contains("style="));
    }
    let referrers: Vec<_> = pages
        .iter()
        .map(|page| page.header("referrer-policy"))
        .collect();
    // Pages with forms keep their origin to themselves and show it to us; what leads elsewhere shows it to nobody.
    assert_eq!(
        referrers,
        [
            "same-origin",
            "same-origin",
            "same-origin",
            "no-referrer",
            "no-referrer",
            "same-origin"
        ]
    );
    assert_eq!(pages[0].header("content-type"), "text/html; charset=utf-8");
}

#[tokio::test]
async fn the_stylesheet_may_be_kept() {
    let house = House::local().await;
    let mut stranger = house.stranger();
    let page = stranger.get("/").await;
    let (_, rest) = page
        .body
        .split_once("<link rel=\"stylesheet\" href=\"")
        .unwrap();
    let (path, _) = rest.split_once('"').unwrap();
    let sheet = stranger.get(path).await;
    assert_eq!(sheet.status, 200);
    assert_eq!(sheet.header("content-type"), "text/css; charset=utf-8");
    assert_eq!(
        sheet.header("cache-control"),
        "public, max-age=31536000, immutable"
    );
    assert!(sheet.body.contains("prefers-color-scheme: dark"));
    assert!(sheet.body.contains(":focus-visible"));
    assert!(!sheet.body.contains("url("));
}

#[tokio::test]
async fn the_client_metadata_document_is_there_only_where_the_operator_published_it() {
    let house = House::local().await;
    let mut stranger = house.stranger();
    assert_eq!(
        stranger.get("/oauth/client-metadata.json").await.status,
        404
    );
    assert_eq!(LOCAL, "http://127.0.0.1:8703");
}
