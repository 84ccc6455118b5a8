//! Links, sign-ins and their end, as browsers meet them.

use super::house::{House, field};

#[tokio::test]
async fn a_link_is_opened_looked_at_and_pressed() {
    let house = House::local().await;
    let link = house.web.invite(None, None).await.unwrap();
    let token = link.invitation.token;
    assert_eq!(
        link.url,
        format!("http://127.0.0.1:8703/login?token={token}")
    );
    let path = format!("/login?token={token}");
    // Something that fetches links ahead of people, without cookies, by GET and HEAD.
    let fetcher = house.stranger();
    for method in ["GET", "HEAD", "GET"] {
        let request = fetcher
            .request(method, &path)
            .body(Default::default())
            .unwrap();
        let page = house.send(request).await;
        assert_eq!(page.status, 200);
        assert_eq!(page.cookies(), [""; 0]);
    }
    let mut ann = house.stranger();
    let page = ann.get(&path).await;
    assert_eq!(
        page.words(),
        "Sign in to Tollgate This signs this browser in as ann . Go on only if that is you, and you asked for this link. \
         What you connect to in this browser then belongs to that user. Sign in as ann"
    );
    let page = ann.post("/login", &page.fields("/login")).await;
    assert_eq!((page.status, page.header("location")), (303, "/"));
    assert_eq!(page.header("referrer-policy"), "no-referrer");
    let home = ann.get("/").await;
    assert_eq!(home.status, 200);
    // It has been used up.
    let mut late = house.stranger();
    assert_eq!(late.get(&path).await.status, 403);
    let page = late.post("/login", &[field("token", &token)]).await;
    assert_eq!(page.status, 403);
    assert_eq!(page.cookies(), [""; 0]);
    assert_eq!(
        page.words(),
        "This link does not sign you in This link has been used, has expired, or is not complete. Run tollgate login (with \
         agent keys, tollgate login --user NAME ) again; each link signs in once, within five minutes. identity.login_link Go to the first page"
    );
    assert_eq!(
        house.records().await,
        [
            "admin sign_in allowed -",
            "request GET refused identity.login_link",
            "request POST refused identity.login_link"
        ]
    );
}

#[tokio::test]
async fn a_link_that_is_late_or_nobodys_signs_nobody_in() {
    let house = House::local().await;
    let link = house.web.invite(None, None).await.unwrap().invitation.token;
    house.clock.forward(300);
    let mut visitor = house.stranger();
    for path in [
        &*format!("/login?token={link}"),
        "/login",
        "/login?token=",
        "/login?token=%3Cscript%3E",
    ] {
        let page = visitor.get(path).await;
        assert_eq!(page.status, 403, "{path}");
        assert!(!page.body.contains("<script"), "{path}");
    }
    for fields in [
        vec![field("token", &link)],
        vec![field("token", "x")],
        vec![],
    ] {
        assert_eq!(visitor.post("/login", &fields).await.status, 403);
    }
    assert!(visitor.cookies.is_empty());
}

#[tokio::test]
async fn who_is_not_signed_in_is_told_how() {
    let house = House::local().await;
    let mut stranger = house.stranger();
    for path in [
        "/",
        "/connect/demo",
        "/disconnect/demo",
        "/sign-ins",
        "/connect/nobody-knows",
    ] {
        let page = stranger.get(path).await;
        assert_eq!(page.status, 401, "{path}");
        assert_eq!(page.header("www-authenticate"), "Tollgate-Session");
        assert_eq!(
            page.words(),
            "Sign in needed This browser is not signed in, or has not been used for a while. On the machine where Tollgate \
             runs, run tollgate login , or, where callers have agent keys, tollgate login --user NAME . Open the link that \
             it prints in this browser. It signs in once, within five minutes. Then come back to this page. If you do not \
             run this Tollgate yourself, ask its operator for the link. identity.signed_out",
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_sign_in_ends_by_time_by_its_user_and_by_the_policy() {
    let house = House::local().await;
    let mut idle = house.visitor().await;
    house.clock.forward(8 * 3600);
    assert_eq!(idle.get("/").await.status, 401);

    let mut ann = house.visitor().await;
    let kept = ann.clone();
    let page = ann.press("/", "/sign-out").await;
    assert_eq!((page.status, page.header("location")), (303, "/result"));
    let told = ann.get("/result").await;
    assert_eq!(
        told.words(),
        "You are signed out Agents go on with what you are connected to."
    );
    assert!(!ann.cookies.contains_key("tollgate-session"));
    // The cookie that somebody may have copied before is worth nothing.
    assert_eq!(kept.clone().get("/").await.status, 401);
}

#[tokio::test]
async fn signing_in_again_ends_the_sign_in_before() {
    let house = House::local().await;
    let mut ann = house.visitor().await;
    let mut before = ann.clone();
    let link = house.web.invite(None, None).await.unwrap();
    ann.sign_in(&link.invitation.token).await;
    assert_ne!(
        ann.cookies["tollgate-session"],
        before.cookies["tollgate-session"]
    );
    assert_eq!(before.get("/").await.status, 401);
    assert_eq!(ann.get("/").await.status, 200);
}

#[tokio::test]
async fn sign_ins_are_listed_and_ended() {
    let house = House::local().await;
    let mut lost = house.visitor().await;
    house.clock.forward(60);
    let mut ann = house.visitor().await;
    let page = ann.get("/sign-ins").await;
    let words = page.words();
    assert!(
        words.contains("This browser Since 29 November 2026, 22:01 UTC"),
        "{words}"
    );
    assert_eq!(words.matches("End it").count(), 2, "{words}");
    // The first form is that of the newest, which is this one; the other stands behind it.
    let (_, rest) = page.body.split_once("</article>").unwrap();
    let name = rest
        .split_once("id=\"sign-in-")
        .unwrap()
        .1
        .split_once('"')
        .unwrap()
        .0;
    let mut fields = page.fields("/sign-ins");
    fields.retain(|(field, _)| field != "sign-in");
    fields.push(field("sign-in", name));
    let answer = ann.post("/sign-ins", &fields).await;
    assert_eq!(
        (answer.status, answer.header("location")),
        (303, "/sign-ins")
    );
    assert_eq!(lost.get("/").await.status, 401);
    assert_eq!(
        ann.get("/sign-ins").await.words().matches("End it").count(),
        1
    );
    // A second press finds it gone, which is what was wanted.
    assert_eq!(ann.post("/sign-ins", &fields).await.status, 303);
    assert_eq!(
        house.records().await,
        [
            "admin sign_in allowed -",
            "admin sign_in allowed -",
            "admin sign_in.revoked allowed -",
            "request GET refused identity.signed_out"
        ]
    );
}

#[tokio::test]
async fn a_row_that_somebody_changed_signs_nobody_in() {
    let house = House::local().await;
    let mut ann = house.visitor().await;
    assert_eq!(house.sql("UPDATE sessions SET user = 'eve'"), 1);
    let page = ann.get("/").await;
    assert_eq!(page.status, 503);
    assert!(page.words().contains("vault.record"), "{}", page.words());
    assert_eq!(
        house.records().await,
        [
            "admin sign_in allowed -",
            "request GET refused vault.record"
        ]
    );
}

#[tokio::test]
async fn cookies_have_the_attributes_of_their_scheme() {
    for (house, cookie) in [
        (
            House::local().await,
            "tollgate-session=ID; Path=/; Max-Age=604800; HttpOnly; SameSite=Lax",
        ),
        (
            House::secure().await,
            "__Host-tollgate-session=ID; Path=/; Max-Age=604800; HttpOnly; SameSite=Lax; Secure",
        ),
    ] {
        let link = house.web.invite(None, None).await.unwrap();
        let mut visitor = house.stranger();
        let page = visitor
            .post("/login", &[field("token", &link.invitation.token)])
            .await;
        let line = page.cookies()[0];
        let (_, rest) = line.split_once('=').unwrap();
        let (id, _) = rest.split_once(';').unwrap();
        assert_eq!(id.len(), 64);
        assert_eq!(line.replace(id, "ID"), cookie);
        assert_eq!(visitor.get("/").await.status, 200);
    }
}

/// On https a cookie without the prefix may have been set by another host of the domain.
#[tokio::test]
async fn a_plain_cookie_counts_nothing_on_https() {
    let house = House::secure().await;
    let ann = house.visitor().await;
    let mut planted = house.stranger();
    let id = ann.cookies["__Host-tollgate-session"].clone();
    planted
        .cookies
        .insert("tollgate-session".to_owned(), id.clone());
    assert_eq!(planted.get("/").await.status, 401);
    // Nor does one that stands twice.
    let twice = format!("__Host-tollgate-session={id}; __Host-tollgate-session={id}");
    let request = house.stranger().request("GET", "/").header("cookie", twice);
    let page = house.send(request.body(Default::default()).unwrap()).await;
    assert_eq!(page.status, 401);
}
