//! Results that were cut.

use serde_json::{Value, json};

use super::{Client, compare, expect, said, strings, text, wire};

impl Client {
    /// A result of which a part is missing is taken, says so, and can be read on.
    pub(super) async fn cut(&self, with: &Value) -> Result<(), String> {
        let listed = wire(self.peer().list_all_tools().await.map_err(text)?)?;
        let mut tools = listed.as_array().into_iter().flatten();
        let promised = tools.find(|tool| tool["name"] == with["tool"]);
        expect(
            promised.is_some_and(|tool| tool["outputSchema"].is_object()),
            true,
        )?;
        let result = self.call(with, Value::Null).await?;
        expect(&result["isError"], &json!(true))?;
        expect(&result["structuredContent"], &Value::Null)?;
        for part in strings(&with["says"]) {
            compare(&said(&result["content"]), &Value::Null, &part.into())?;
        }
        let cut = &result["_meta"]["io.tollgate/cut"];
        expect(&cut["why"], &json!("result"))?;
        expect(&cut["tool"], &with["reader"])?;
        expect(&cut["endpoint"], &with["endpoint"])?;
        let elsewhere = match with["endpoint"].as_str() {
            None => None,
            Some(endpoint) => {
                let host = self.url.split("/mcp/").next().unwrap_or_default();
                Some(Self::connect(format!("{host}{endpoint}")).await?)
            }
        };
        let reader = elsewhere.as_ref().unwrap_or(self);
        let texts = reader.read_on(cut, &json!(0)).await?;
        let structure = texts.last().map(|last| serde_json::from_str(last));
        expect(
            &structure.transpose().map_err(text)?,
            &Some(with["value"].clone()),
        )?;
        let rest = reader.read_on(cut, &cut["offset"]).await?.concat();
        expect(!rest.is_empty() && texts.concat().ends_with(&rest), true)
    }

    /// The texts of a result from there on; what is structured is the last of them.
    async fn read_on(&self, cut: &Value, offset: &Value) -> Result<Vec<String>, String> {
        let (mut texts, mut end) = (Vec::<String>::new(), Value::Null);
        let mut next = offset.clone();
        while next.is_number() {
            let arguments = json!({"handle": cut["handle"], "offset": next});
            let reading = json!({"tool": cut["tool"], "arguments": arguments});
            let result = self.call(&reading, Value::Null).await?;
            expect(result["isError"] == true, false)?;
            let place = &result["_meta"]["io.tollgate/read"];
            let piece = result["content"][0]["text"].as_str().unwrap_or_default();
            match texts.last_mut() {
                Some(last) if place["offset"] == end => last.push_str(piece),
                _ => texts.push(piece.to_owned()),
            }
            (end, next) = (place["end"].clone(), place["next"].clone());
        }
        Ok(texts)
    }
}
