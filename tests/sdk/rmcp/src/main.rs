//! The Rust SDK as a client of the matrix, in the era that it negotiates. Arguments: the URL, and the
//! steps to take, `[["list", {…}], …]`.
//!
//! It does what the other clients do and reports as they do, in one line of JSON:
//! `{"version": "2026-07-28", "steps": {"list": "ok", "call": "what was wrong", …}}`

mod steps;
mod user;

use std::env;
use std::time::Duration;

use serde_json::{Map, Value, json};

use steps::Client;

const STEP: Duration = Duration::from_secs(20);

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let url = env::args().nth(1).unwrap_or_default();
    let wanted = env::args().nth(2).unwrap_or_default();
    let mut steps = Map::new();
    let mut version = Value::Null;
    match within(Client::connect(url)).await {
        Err(fault) => drop(steps.insert("connect".into(), fault.into())),
        Ok(mut client) => {
            version = client.version().into();
            let wanted: Vec<(String, Value)> = serde_json::from_str(&wanted).unwrap_or_default();
            for (name, parameters) in &wanted {
                // `read-blob` is the step `read` once more.
                let step = name.split('-').next().unwrap_or_default();
                let outcome = within(client.take(step, parameters)).await;
                let outcome = outcome.err().unwrap_or_else(|| "ok".into());
                steps.insert(name.clone(), outcome.into());
            }
        }
    }
    println!("{}", json!({"version": version, "steps": steps}));
}

async fn within<T>(step: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    match tokio::time::timeout(STEP, step).await {
        Ok(outcome) => outcome,
        Err(_) => Err("the step took too long".into()),
    }
}
