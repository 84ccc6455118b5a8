//! The walk: what an agent does through Tollgate, step by step, and whether each step went as it should.

use std::{io, net::IpAddr, path::Path, time::Duration};

use serde_json::{Value, json};

use super::{Answer, Client, DemoError, NameServer, REBINDING_NAME, Screen, ToolServer, records};
use crate::refusal::Code;

/// How long records of what was answered may take to reach the disk.
const RECORDS_WITHIN: Duration = Duration::from_secs(5);
/// How long an answer of a name server counts at least, and a little more.
const ANSWER_COUNTS: Duration = Duration::from_millis(1100);
/// The calls of the walk that must be refused.
const REFUSED: usize = 4;

/// Everything that a walk needs.
pub struct Walk<'a, 'w> {
    /// The agent.
    pub client: &'a Client,
    /// The tool server that it reaches.
    pub tools: &'a ToolServer,
    /// The name server that Tollgate asks.
    pub names: &'a NameServer,
    /// The folder of Tollgate's records.
    pub records: &'a Path,
    /// Where to print.
    pub screen: Screen<'w>,
}

impl std::fmt::Debug for Walk<'_, '_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Walk")
            .field("records", &self.records)
            .finish_non_exhaustive()
    }
}

impl Walk<'_, '_> {
    /// Takes every step; true if all went as they should.
    pub async fn run(&mut self) -> Result<bool, DemoError> {
        let mut good = self.list().await?;
        good &= self.call().await?;
        good &= self.stream().await?;
        good &= self.blocked_literals().await?;
        good &= self.rebinding().await?;
        good &= self.side_effect().await?;
        good &= self.show_records().await?;
        Ok(good)
    }

    async fn list(&mut self) -> Result<bool, DemoError> {
        self.title("1  An agent lists the tools of a server")?;
        self.note("The server is the demo's own, on loopback; servers/tools.toml registers it, egress.toml opens it.")?;
        let answer = self.send("tools", "tools/list", json!({})).await?;
        let names: Vec<&str> = answer.message["result"]["tools"]
            .as_array()
            .map(|tools| {
                tools
                    .iter()
                    .filter_map(|tool| tool["name"].as_str())
                    .collect()
            })
            .unwrap_or_default();
        let shown = if names.is_empty() {
            answer.text().to_owned()
        } else {
            names.join(", ")
        };
        self.received(&shown)?;
        self.verdict(
            names
                == [
                    "get_time",
                    "get_weather",
                    "count_slowly",
                    "send_message",
                    "tollgate__read_result",
                ],
            "the tools came through Tollgate, each as the server wrote it; the last is Tollgate's own",
        )
    }

    async fn call(&mut self) -> Result<bool, DemoError> {
        self.title("2  It calls a tool that only reads")?;
        self.note("`get_*` stands in the server's read_only list, so the call runs without asking anybody.")?;
        let answer = self
            .tool("tools", "get_weather", json!({ "city": "Lisbon" }))
            .await?;
        self.verdict(
            answer.is_good() && answer.text().starts_with("Lisbon"),
            "judged, recorded, answered",
        )
    }

    async fn stream(&mut self) -> Result<bool, DemoError> {
        self.title("3  It calls a tool that reports on the way")?;
        self.note("Events are passed on one by one, as they come.")?;
        let params = json!({ "name": "count_slowly", "arguments": { "to": 4 } });
        self.sent("tools", "tools/call", &params)?;
        let mut events = 0;
        let mut printed = Ok(());
        let screen = &mut self.screen;
        let mut progress = |message: &str| {
            events += 1;
            if printed.is_ok() {
                printed = screen.received(message);
            }
        };
        let answer = self
            .client
            .request("tools", "tools/call", params, &mut progress)
            .await?;
        printed.map_err(DemoError::Screen)?;
        self.received(answer.text())?;
        self.verdict(
            answer.is_good() && events == 4,
            &format!("{events} events, then the answer"),
        )
    }

    async fn blocked_literals(&mut self) -> Result<bool, DemoError> {
        let mut good = true;
        for (step, server, address, why) in [
            (
                4,
                "metadata",
                "169.254.169.254",
                "Cloud machines keep credentials there. Nothing can open it.",
            ),
            (
                5,
                "private",
                "10.20.30.40",
                "Private networks stay closed until a private grant names the exact host.",
            ),
        ] {
            self.title(&format!(
                "{step}  Somebody registered a server at {address}"
            ))?;
            self.note(why)?;
            let answer = self.tool(server, "get_secret", json!({})).await?;
            good &= self.verdict(
                answer.is_refusal(Code::AddressBlocked),
                "refused before a connection was opened",
            )?;
        }
        Ok(good)
    }

    async fn rebinding(&mut self) -> Result<bool, DemoError> {
        self.title("6  A name that is granted 127.0.0.1, and answers 127.0.0.1")?;
        self.note(
            "Every answer is judged as a whole, and only judged addresses are connected to.",
        )?;
        self.names.set(REBINDING_NAME, IpAddr::from([127, 0, 0, 1]));
        let answer = self
            .tool("rebinding", "get_weather", json!({ "city": "Oslo" }))
            .await?;
        let mut good = self.verdict(answer.is_good(), "the address lies within the grant")?;

        self.title("7  The same name now answers 169.254.169.254")?;
        self.note("The name server changed its mind (DNS rebinding). For a second Tollgate keeps to the judged address; then it asks again.",)?;
        self.names
            .set(REBINDING_NAME, IpAddr::from([169, 254, 169, 254]));
        tokio::time::sleep(ANSWER_COUNTS).await;
        let answer = self
            .tool("rebinding", "get_weather", json!({ "city": "Oslo" }))
            .await?;
        good &= self.verdict(
            answer.is_refusal(Code::AddressBlocked),
            "refused: the new answer was judged like the first",
        )?;
        Ok(good)
    }

    async fn side_effect(&mut self) -> Result<bool, DemoError> {
        self.title("8  It calls a tool that has an effect")?;
        self.note(
            "`send_message` is not accepted as read-only, and nobody has approved the call.",
        )?;
        let arguments = json!({ "to": "everyone", "text": "hello" });
        let answer = self.tool("tools", "send_message", arguments).await?;
        let sent = self.tools.sent().len();
        self.verdict(
            answer.is_refusal(Code::ApprovalUnavailable) && sent == 0,
            &format!("refused; the tool server has sent {sent} messages"),
        )
    }

    async fn show_records(&mut self) -> Result<bool, DemoError> {
        self.title("9  What was recorded")?;
        self.note("One record for every decision, refusals included, chained by SHA-256 (the last column).")?;
        let refused = |records: &[Value]| {
            let refusals = records
                .iter()
                .filter(|record| record["outcome"] == "refused");
            refusals.count()
        };
        let poll = async {
            loop {
                let records = records::read(self.records)?;
                if refused(&records) >= REFUSED {
                    return Ok(records);
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let found: io::Result<Vec<Value>> = match tokio::time::timeout(RECORDS_WITHIN, poll).await {
            Ok(found) => found,
            Err(_) => records::read(self.records),
        };
        let found = found.map_err(|source| DemoError::Folder {
            folder: self.records.to_owned(),
            source,
        })?;
        self.note(&records::heading())?;
        for record in &found {
            self.screen
                .plain(&records::line(record))
                .map_err(DemoError::Screen)?;
        }
        let refused = refused(&found);
        self.verdict(
            refused == REFUSED,
            &format!("{} records, {refused} of them of refusals", found.len()),
        )
    }

    /// Calls a tool, and prints both ways.
    async fn tool(
        &mut self,
        server: &str,
        tool: &str,
        arguments: Value,
    ) -> Result<Answer, DemoError> {
        let params = json!({ "name": tool, "arguments": arguments });
        let answer = self.send(server, "tools/call", params).await?;
        self.received(answer.text())?;
        Ok(answer)
    }

    async fn send(
        &mut self,
        server: &str,
        method: &str,
        params: Value,
    ) -> Result<Answer, DemoError> {
        self.sent(server, method, &params)?;
        self.client
            .request(server, method, params, &mut |_| {})
            .await
    }

    fn sent(&mut self, server: &str, method: &str, params: &Value) -> Result<(), DemoError> {
        let what = params["name"]
            .as_str()
            .map(|tool| format!("  {tool} {}", params["arguments"]))
            .unwrap_or_default();
        self.screen
            .sent(&format!("/mcp/{server}  {method}{what}"))
            .map_err(DemoError::Screen)
    }

    fn title(&mut self, text: &str) -> Result<(), DemoError> {
        self.screen.title(text).map_err(DemoError::Screen)
    }

    fn note(&mut self, text: &str) -> Result<(), DemoError> {
        self.screen.note(text).map_err(DemoError::Screen)
    }

    fn received(&mut self, text: &str) -> Result<(), DemoError> {
        self.screen.received(text).map_err(DemoError::Screen)
    }

    fn verdict(&mut self, good: bool, text: &str) -> Result<bool, DemoError> {
        let text = if good {
            text.to_owned()
        } else {
            format!("not as it should be; expected: {text}")
        };
        self.screen
            .verdict(good, &text)
            .map_err(DemoError::Screen)?;
        Ok(good)
    }
}
