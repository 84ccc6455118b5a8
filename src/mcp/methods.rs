//! The methods that are relayed, by direction and era. What is not here is unknown.

use super::{Era, Kind};

/// A method that clients may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// `tools/call`.
    ToolsCall,
    /// `tools/list`.
    ToolsList,
    /// `resources/list`.
    ResourcesList,
    /// `resources/templates/list`.
    TemplatesList,
    /// `resources/read`.
    ResourcesRead,
    /// `resources/subscribe` (legacy; modern clients listen).
    ResourcesSubscribe,
    /// `resources/unsubscribe` (legacy).
    ResourcesUnsubscribe,
    /// `prompts/list`.
    PromptsList,
    /// `prompts/get`.
    PromptsGet,
    /// `completion/complete`.
    Complete,
    /// `logging/setLevel` (legacy; modern requests name their level).
    SetLevel,
    /// `subscriptions/listen` (modern).
    Listen,
    /// `server/discover` (modern).
    Discover,
    /// `initialize` (legacy).
    Initialize,
    /// `ping` (legacy).
    Ping,
    /// `notifications/initialized` (legacy).
    Initialized,
    /// `notifications/cancelled` (legacy; modern clients close the stream).
    Cancelled,
    /// `notifications/progress` (legacy): of what a server asked the client to do.
    Progress,
    /// `notifications/roots/list_changed` (legacy).
    RootsChanged,
}

const BOTH: &[Era] = &[Era::Modern, Era::Legacy];
const MODERN: &[Era] = &[Era::Modern];
const LEGACY: &[Era] = &[Era::Legacy];

const REQUESTS: [(Method, &[Era]); 15] = [
    (Method::ToolsCall, BOTH),
    (Method::ToolsList, BOTH),
    (Method::ResourcesRead, BOTH),
    (Method::ResourcesList, BOTH),
    (Method::TemplatesList, BOTH),
    (Method::PromptsGet, BOTH),
    (Method::PromptsList, BOTH),
    (Method::Complete, BOTH),
    (Method::Listen, MODERN),
    (Method::Discover, MODERN),
    (Method::Initialize, LEGACY),
    (Method::Ping, LEGACY),
    (Method::SetLevel, LEGACY),
    (Method::ResourcesSubscribe, LEGACY),
    (Method::ResourcesUnsubscribe, LEGACY),
];

const NOTIFICATIONS: [(Method, &[Era]); 4] = [
    (Method::Initialized, LEGACY),
    (Method::Cancelled, LEGACY),
    (Method::Progress, LEGACY),
    (Method::RootsChanged, LEGACY),
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
            Self::ToolsCall => "tools/call",
            Self::ToolsList => "tools/list",
            Self::ResourcesList => "resources/list",
            Self::TemplatesList => "resources/templates/list",
            Self::ResourcesRead => "resources/read",
            Self::ResourcesSubscribe => "resources/subscribe",
            Self::ResourcesUnsubscribe => "resources/unsubscribe",
            Self::PromptsList => "prompts/list",
            Self::PromptsGet => "prompts/get",
            Self::Complete => "completion/complete",
            Self::SetLevel => "logging/setLevel",
            Self::Listen => "subscriptions/listen",
            Self::Discover => "server/discover",
            Self::Initialize => "initialize",
            Self::Ping => "ping",
            Self::Initialized => "notifications/initialized",
            Self::Cancelled => "notifications/cancelled",
            Self::Progress => "notifications/progress",
            Self::RootsChanged => "notifications/roots/list_changed",
        }
    }

    /// Whether modern results carry caching hints (MCP 2026-07-28, caching).
    pub fn is_cacheable(self) -> bool {
        matches!(
            self,
            Self::Discover
                | Self::ToolsList
                | Self::ResourcesList
                | Self::TemplatesList
                | Self::PromptsList
                | Self::ResourcesRead
        )
    }

    /// Whether a modern server may answer with questions (MCP 2026-07-28, multi round-trip requests).
    pub fn may_ask(self) -> bool {
        matches!(
            self,
            Self::ToolsCall | Self::PromptsGet | Self::ResourcesRead
        )
    }
}

/// What a server may ask of a client, where the client offers it and the operator lets it through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Question {
    /// `elicitation/create`.
    Elicit,
    /// `sampling/createMessage`.
    Sample,
    /// `roots/list`.
    Roots,
}

impl Question {
    /// The question of that name.
    pub fn find(name: &str) -> Option<Self> {
        [Self::Elicit, Self::Sample, Self::Roots]
            .into_iter()
            .find(|question| question.as_str() == name)
    }

    /// The method on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Elicit => "elicitation/create",
            Self::Sample => "sampling/createMessage",
            Self::Roots => "roots/list",
        }
    }
}

/// What a server may tell a client unasked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum News {
    /// `notifications/progress`.
    Progress,
    /// `notifications/message`.
    Log,
    /// `notifications/cancelled`: the server takes a question of its own back.
    Cancelled,
    /// `notifications/{tools,prompts,resources}/list_changed`.
    ListChanged,
    /// `notifications/resources/updated`.
    ResourceUpdated,
    /// `notifications/elicitation/complete`.
    ElicitationComplete,
    /// `notifications/subscriptions/acknowledged` (modern).
    Acknowledged,
}

impl News {
    /// The notification of that name.
    pub fn find(name: &str) -> Option<Self> {
        Some(match name {
            "notifications/progress" => Self::Progress,
            "notifications/message" => Self::Log,
            "notifications/cancelled" => Self::Cancelled,
            "notifications/tools/list_changed"
            | "notifications/prompts/list_changed"
            | "notifications/resources/list_changed" => Self::ListChanged,
            "notifications/resources/updated" => Self::ResourceUpdated,
            "notifications/elicitation/complete" => Self::ElicitationComplete,
            "notifications/subscriptions/acknowledged" => Self::Acknowledged,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_era_knows_its_own_methods() {
        for (name, modern, legacy) in [
            ("server/discover", Some(Method::Discover), None),
            ("subscriptions/listen", Some(Method::Listen), None),
            ("initialize", None, Some(Method::Initialize)),
            ("ping", None, Some(Method::Ping)),
            ("logging/setLevel", None, Some(Method::SetLevel)),
            (
                "resources/subscribe",
                None,
                Some(Method::ResourcesSubscribe),
            ),
            (
                "tools/call",
                Some(Method::ToolsCall),
                Some(Method::ToolsCall),
            ),
            (
                "prompts/get",
                Some(Method::PromptsGet),
                Some(Method::PromptsGet),
            ),
            ("Tools/Call", None, None),
            ("tasks/get", None, None),
            ("elicitation/create", None, None),
            ("notifications/cancelled", None, None),
            ("", None, None),
        ] {
            let find = |era| Method::find(era, Kind::Request, name);
            assert_eq!(find(Era::Modern), modern, "{name}");
            assert_eq!(find(Era::Legacy), legacy, "{name}");
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

    #[test]
    fn names_lead_back_to_their_methods() {
        for (method, eras) in REQUESTS {
            for era in eras {
                let found = Method::find(*era, Kind::Request, method.as_str());
                assert_eq!(found, Some(method));
            }
        }
        for question in [Question::Elicit, Question::Sample, Question::Roots] {
            assert_eq!(Question::find(question.as_str()), Some(question));
        }
        assert_eq!(Question::find("ping"), None);
        assert_eq!(News::find("notifications/tasks/status"), None);
    }
}
