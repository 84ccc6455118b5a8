//! Whoever is not signed in cannot fill the log of records.

use super::house::House;

#[tokio::test]
async fn what_strangers_cause_is_counted_once_there_is_much_of_it() {
    let house = House::local().await;
    let mut stranger = house.stranger();
    for _ in 0..100 {
        assert_eq!(stranger.get("/nowhere").await.status, 404);
    }
    for _ in 0..3 {
        assert_eq!(stranger.get("/oauth/callback?code=c").await.status, 303);
    }
    // What a person does has its record all the same.
    house.visitor().await;
    let metrics = house.metrics();
    assert!(metrics.contains("tollgate_web_refusals_total{code=\"web.not_found\"} 100"));
    let records = house.records().await;
    let count = |summary: &str| records.iter().filter(|record| *record == summary).count();
    assert_eq!(count("request GET refused web.not_found"), 60);
    assert_eq!(count("request GET refused connect.browser"), 0);
    assert_eq!(count("admin sign_in allowed -"), 1);
    let lines = crate::audit::records(&house.folder.path().join("audit"));
    let told: Vec<_> = lines
        .iter()
        .filter(|record| record["times"].is_u64())
        .map(|record| {
            (
                record["code"].as_str().unwrap(),
                record["times"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(told, [("connect.browser", 3), ("web.not_found", 40)]);
}
