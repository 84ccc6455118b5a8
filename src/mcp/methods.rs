//! The methods that clients may use, by era. What is not here is unknown.

use super::{Era, Kind};

/// A method that this version serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// `server/discover` (modern).
    Discover,
    /// `initialize` (legacy).
    Initialize,
    /// `ping` (legacy).
    Ping,
    /// `tools/list`.
    ToolsList,
    /// `tools/call`.
    ToolsCall,
    /// `notifications/initialized` (legacy).
    Initialized,
    /// `notifications/cancelled` (legacy; modern clients close the stream).
    Cancelled,
    /// `notifications/progress` (legacy).
    Progress,
}

const REQUESTS: [(Method, &[Era]); 5] = [
    (Method::ToolsCall, &[Era::Modern, Era::Legacy]),
    (Method::ToolsList, &[Era::Modern, Era::Legacy]),
    (Method::Discover, &[Era::Modern]),
    (Method::Initialize, &[Era::Legacy]),
    (Method::Ping, &[Era::Legacy]),
];

const NOTIFICATIONS: [(Method, &[Era]); 3] = [
    (Method::Initialized, &[Era::Legacy]),
    (Method::Cancelled, &[Era::Legacy]),
    (Method::Progress, &[Era::Legacy]),
];

impl Method {
    /// The method of that name in that era. An unknown request is refused, an unknown notification is ignored.
    pub fn find(era: Era, kind: Kind, name: &str) -> Option<Self> {
        let table: &[(Self, &[Era])] = match kind {
            Kind::Request => &REQUESTS,
            Kind::Notification => &NOTIFICATIONS,
            Kind::Response => &[],
        };
        table
            .iter()
            .find(|(method, eras)| method.as_str() == name && eras.contains(&era))
            .map(|(method, _)| *method)
    }

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Discover => "server/discover",
            Self::Initialize => "initialize",
            Self::Ping => "ping",
            Self::ToolsList => "tools/list",
            Self::ToolsCall => "tools/call",
            Self::Initialized => "notifications/initialized",
            Self::Cancelled => "notifications/cancelled",
            Self::Progress => "notifications/progress",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_era_knows_its_own_methods() {
        for (name, modern, legacy) in [
            ("server/discover", Some(Method::Discover), None),
            ("initialize", None, Some(Method::Initialize)),
            ("ping", None, Some(Method::Ping)),
            (
                "tools/list",
                Some(Method::ToolsList),
                Some(Method::ToolsList),
            ),
            (
                "tools/call",
                Some(Method::ToolsCall),
                Some(Method::ToolsCall),
            ),
            ("Tools/Call", None, None),
            ("prompts/get", None, None),
            ("logging/setLevel", None, None),
            ("notifications/cancelled", None, None),
            ("", None, None),
        ] {
            assert_eq!(
                Method::find(Era::Modern, Kind::Request, name),
                modern,
                "{name}"
            );
            assert_eq!(
                Method::find(Era::Legacy, Kind::Request, name),
                legacy,
                "{name}"
            );
        }
        let cancelled = "notifications/cancelled";
        assert_eq!(
            Method::find(Era::Legacy, Kind::Notification, cancelled),
            Some(Method::Cancelled)
        );
        assert_eq!(
            Method::find(Era::Modern, Kind::Notification, cancelled),
            None
        );
        assert_eq!(
            Method::find(Era::Legacy, Kind::Notification, "tools/call"),
            None
        );
    }
}
