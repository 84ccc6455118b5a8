//! Logs: one target per room (its module path), levels that can be changed while the process runs.

use std::{io::IsTerminal, str::FromStr};

use tracing::{level_filters::LevelFilter, subscriber::SetGlobalDefaultError};
use tracing_subscriber::{
    Layer, Registry,
    filter::Targets,
    fmt::{self, MakeWriter},
    layer::SubscriberExt,
    reload,
};

/// The rooms whose level can be set.
pub const ROOMS: [&str; 23] = [
    "address",
    "app",
    "approval",
    "audit",
    "budget",
    "catalog",
    "cli",
    "config",
    "connect",
    "demo",
    "egress",
    "gateway",
    "identity",
    "listen",
    "mcp",
    "policy",
    "store",
    "telemetry",
    "tunnel",
    "upstream",
    "vault",
    "web",
    "tollgate",
];

/// How a log line looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Text where standard error is a terminal, else JSON.
    #[default]
    Auto,
    /// For people.
    Text,
    /// One object a line.
    Json,
}

/// Logs cannot be set up, or a level cannot be set.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// There is no such room.
    #[error("`{0}` is not a room, expected one of {rooms}", rooms = ROOMS.join(", "))]
    Room(String),
    /// There is no such level.
    #[error("`{0}` is not a level, expected off, error, warn, info, debug or trace")]
    Level(String),
    /// Logs were set up before.
    #[error("logs are set up already")]
    Twice(#[source] SetGlobalDefaultError),
    /// The process is ending.
    #[error("logs are shut down")]
    Gone(#[source] reload::Error),
}

/// The levels in force; rooms that were not set log at `info`, libraries at `warn`.
#[derive(Clone, Debug)]
pub struct Levels(reload::Handle<Targets, Registry>);

impl Levels {
    /// Sends this process's logs to standard error.
    pub fn install(format: Format) -> Result<Self, LogError> {
        let (levels, subscriber) =
            subscriber(format, std::io::stderr, std::io::stderr().is_terminal());
        tracing::subscriber::set_global_default(subscriber).map_err(LogError::Twice)?;
        Ok(levels)
    }

    /// Sets levels, written as `ROOM=LEVEL` and separated by commas; `tollgate` stands for every room that is not set.
    pub fn set(&self, text: &str) -> Result<(), LogError> {
        let changes = text.split(',').map(parse).collect::<Result<Vec<_>, _>>()?;
        self.0
            .modify(|targets| {
                *targets = targets.clone().with_targets(changes);
            })
            .map_err(LogError::Gone)
    }
}

fn parse(text: &str) -> Result<(String, LevelFilter), LogError> {
    let text = text.trim();
    let (room, level) = text.split_once('=').unwrap_or(("tollgate", text));
    let level = LevelFilter::from_str(level).map_err(|_| LogError::Level(level.to_owned()))?;
    match room {
        "tollgate" => Ok((room.to_owned(), level)),
        room if ROOMS.contains(&room) => Ok((format!("tollgate::{room}"), level)),
        room => Err(LogError::Room(room.to_owned())),
    }
}

fn subscriber<W>(
    format: Format,
    writer: W,
    terminal: bool,
) -> (Levels, impl tracing::Subscriber + Send + Sync)
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let targets = Targets::new()
        .with_default(LevelFilter::WARN)
        .with_target("tollgate", LevelFilter::INFO);
    let (filter, handle) = reload::Layer::new(targets);
    let lines = fmt::layer().with_writer(writer).with_ansi(terminal);
    let lines = match format {
        Format::Auto if terminal => lines.boxed(),
        Format::Text => lines.boxed(),
        Format::Auto | Format::Json => lines.json().flatten_event(true).boxed(),
    };
    (
        Levels(handle),
        tracing_subscriber::registry().with(lines.with_filter(filter)),
    )
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{Arc, Mutex},
    };

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0
                .lock()
                .expect("no test panics within a write")
                .write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(format: Format, log: impl FnOnce(&Levels)) -> String {
        let lines = Lines::default();
        let writer = lines.clone();
        let (levels, subscriber) = subscriber(format, move || writer.clone(), false);
        tracing::subscriber::with_default(subscriber, || log(&levels));
        let bytes = lines.0.lock().expect("the writer is gone").clone();
        String::from_utf8(bytes).expect("logs are UTF-8")
    }

    #[test]
    fn json_is_one_object_a_line_with_the_rooms_target() {
        let text = logged(Format::Auto, |_| {
            tracing::info!(target: "tollgate::egress", port = 443, "dialled\n\u{1b}[2J");
        });
        let value: serde_json::Value = serde_json::from_str(&text).expect("one object");
        assert_eq!(value["target"], "tollgate::egress");
        assert_eq!(value["port"], 443);
        assert_eq!(value["level"], "INFO");
        assert_eq!(text.lines().count(), 1);
    }

    #[test]
    fn a_rooms_level_changes_while_the_process_runs() {
        let text = logged(Format::Text, |levels| {
            tracing::debug!(target: "tollgate::egress::dial", "one");
            levels.set("egress=debug").expect("a room and a level");
            tracing::debug!(target: "tollgate::egress::dial", "two");
            tracing::debug!(target: "tollgate::policy", "three");
            levels
                .set("tollgate=error,egress=off")
                .expect("rooms and levels");
            tracing::info!(target: "tollgate::policy", "four");
            tracing::error!(target: "tollgate::egress", "five");
            tracing::info!(target: "hyper", "six");
        });
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains("two"));
    }

    #[test]
    fn what_is_no_room_or_level_is_told() {
        logged(Format::Text, |levels| {
            assert!(
                matches!(levels.set("attic=debug"), Err(LogError::Room(room)) if room == "attic")
            );
            assert!(
                matches!(levels.set("egress=loud"), Err(LogError::Level(level)) if level == "loud")
            );
            assert!(levels.set("warn").is_ok());
        });
    }
}
