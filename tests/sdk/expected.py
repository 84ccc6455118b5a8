"""Who takes part in the matrix, what each step of a client is given, and what must come of it.

A step that a server cannot do, even without Tollgate, is left out in `IMPOSSIBLE`, which says why.
"""

import dataclasses

MODERN, LEGACY = "2026-07-28", "2025-11-25"

# Bytes of a result that get through Tollgate.
RESULT_BYTES = 16384
# The tool that reads on: beside a server's own, and of Tollgate's server.
BESIDE, READER, ENDPOINT = "tollgate__read_result", "read_result", "/mcp/tollgate"

# What the servers offer that are written here, by the tools' names in python/tools.py and
# typescript/tools.mjs.
OWN = {
    "capabilities": {"has": ["completions", "logging", "prompts", "resources", "tools"]},
    "list": {
        "names": [
            *("ask", "cancelled", "change", "count", "echo", "fail", "measure", "roots"),
            *("sample", "slow", "survey", "touch", "visit", "warn"),
        ]
    },
    "call": {"tool": "echo", "arguments": {"text": "héllo"}, "text": "héllo"},
    "structured": {"tool": "measure", "arguments": {"town": "Ulm"}, "value": {"town": "Ulm", "degrees": 12}},
    # Its tool promises a schema, and what is structured alone is larger than RESULT_BYTES.
    "structured-large": {
        "tool": "survey",
        "arguments": {"count": 600},
        "value": {"towns": [{"town": f"town {n}", "degrees": n} for n in range(600)]},
    },
    "progress": {
        "tool": "count",
        "arguments": {"n": 3},
        "contains": "counted to 3",
        "seen": [[1, 3], [2, 3], [3, 3]],
    },
    "error": {"tool": "fail", "arguments": {}, "contains": "refused on purpose"},
    "ping": {},
    "resources": {"uris": ["test://bytes", "test://note"]},
    "templates": {"templates": ["test://item/{number}"]},
    "read": {"uri": "test://note", "text": "a nöte"},
    "read-blob": {"uri": "test://bytes", "blob": "AAH+/w=="},
    "read-template": {"uri": "test://item/7", "text": "item 7"},
    "prompts": {"names": ["greet"]},
    "prompt": {"name": "greet", "arguments": {"name": "Ada"}, "text": "Greet Ada."},
    "complete-prompt": {
        "ref": {"type": "ref/prompt", "name": "greet"},
        "argument": {"name": "name", "value": "Ad"},
        "values": ["Ada", "Adele"],
    },
    "complete-template": {
        "ref": {"type": "ref/resource", "uri": "test://item/{number}"},
        "argument": {"name": "number", "value": "7"},
        "values": ["7", "77"],
    },
    "log": {"level": "warning", "tool": "warn", "arguments": {}, "contains": "low water"},
    "subscribe": {"uri": "test://note", "tool": "touch", "arguments": {"uri": "test://note"}},
    "changed": {"kind": "tools", "tool": "change", "arguments": {}},
    "elicit": {
        "tool": "ask",
        "arguments": {},
        "asked": "Who is there?",
        "answer": {"action": "accept", "content": {"name": "Ada"}},
        "contains": "hello Ada",
    },
    "elicit-decline": {
        "tool": "ask",
        "arguments": {},
        "asked": "Who is there?",
        "answer": {"action": "decline"},
        "contains": "decline",
    },
    "elicit-url": {
        "tool": "visit",
        "arguments": {},
        "asked": "Sign in there.",
        "answer": {"action": "accept"},
        "contains": "accept",
    },
    "sample": {"tool": "sample", "arguments": {}, "contains": "pond-1: an old silent pond"},
    "roots": {"tool": "roots", "arguments": {}, "contains": "file:///project"},
    "cancel": {"tool": "slow", "counter": "cancelled"},
}

# npm's @modelcontextprotocol/server-everything.
EVERYTHING = {
    "capabilities": {"has": ["completions", "logging", "prompts", "resources", "tools"]},
    "list": {
        "names": [
            *("echo", "get-annotated-message", "get-env", "get-resource-links", "get-resource-reference"),
            *("get-roots-list", "get-structured-content", "get-sum", "get-tiny-image"),
            *("gzip-file-as-resource", "toggle-simulated-logging", "toggle-subscriber-updates"),
            *("trigger-elicitation-request", "trigger-long-running-operation"),
            *("trigger-sampling-request", "trigger-url-elicitation"),
        ],
        # It needs tasks, which Tollgate withholds.
        "optional": ["simulate-research-query"],
    },
    "call": {"tool": "echo", "arguments": {"message": "héllo"}, "text": "Echo: héllo"},
    "structured": {
        "tool": "get-structured-content",
        "arguments": {"location": "New York"},
        "value": {"temperature": 33, "conditions": "Cloudy", "humidity": 82},
    },
    "progress": {
        "tool": "trigger-long-running-operation",
        "arguments": {"duration": 0.3, "steps": 3},
        "contains": "Long running operation completed.",
        "seen": [[1, 3], [2, 3], [3, 3]],
    },
    "error": {"tool": "get-sum", "arguments": {"a": "one", "b": 2}, "contains": "get-sum"},
    "ping": {},
    "resources": {
        "uris": [
            f"demo://resource/static/document/{name}.md"
            for name in (
                *("architecture", "extension", "features", "how-it-works"),
                *("instructions", "startup", "structure"),
            )
        ]
    },
    "templates": {
        "templates": ["demo://resource/dynamic/blob/{resourceId}", "demo://resource/dynamic/text/{resourceId}"]
    },
    "read": {"uri": "demo://resource/static/document/structure.md", "contains": "# Everything Server"},
    "read-template": {"uri": "demo://resource/dynamic/text/7", "contains": "Resource 7: This is a plaintext"},
    "prompts": {"names": ["args-prompt", "completable-prompt", "resource-prompt", "simple-prompt"]},
    "prompt": {
        "name": "args-prompt",
        "arguments": {"city": "Ulm", "state": "Württemberg"},
        "text": "What's weather in Ulm, Württemberg?",
    },
    "complete-prompt": {
        "ref": {"type": "ref/prompt", "name": "completable-prompt"},
        "argument": {"name": "department", "value": "S"},
        "values": ["Sales", "Support"],
    },
    "complete-template": {
        "ref": {"type": "ref/resource", "uri": "demo://resource/dynamic/text/{resourceId}"},
        "argument": {"name": "resourceId", "value": "7"},
        "values": ["7"],
    },
    # It sends one of eight messages at once; all levels are wanted.
    "log": {"level": "debug", "tool": "toggle-simulated-logging", "arguments": {}, "contains": "message"},
    "subscribe": {
        "uri": "demo://resource/dynamic/text/7",
        "tool": "toggle-subscriber-updates",
        "arguments": {},
    },
    "changed": {
        "kind": "resources",
        "tool": "gzip-file-as-resource",
        "arguments": {"name": "note.gz", "data": "data:text/plain,hello", "outputType": "resourceLink"},
    },
    "elicit": {
        "tool": "trigger-elicitation-request",
        "arguments": {},
        "asked": "Please provide inputs for the following fields:",
        "answer": {"action": "accept", "content": {"name": "Ada", "integer": 7}},
        "contains": "- Name: Ada\n- Favorite Integer: 7",
    },
    "elicit-decline": {
        "tool": "trigger-elicitation-request",
        "arguments": {},
        "asked": "Please provide inputs for the following fields:",
        "answer": {"action": "decline"},
        "contains": "User declined to provide the requested information",
    },
    "elicit-url": {
        "tool": "trigger-url-elicitation",
        "arguments": {"url": "https://example.com/form", "message": "Open this.", "elicitationId": "form-1"},
        "asked": "Open this.",
        "answer": {"action": "accept"},
        "contains": "User completed the URL elicitation flow.\nElicitation ID: form-1",
    },
    "sample": {
        "tool": "trigger-sampling-request",
        "arguments": {"prompt": "a haiku"},
        "contains": "an old silent pond",
    },
    "roots": {"tool": "get-roots-list", "arguments": {}, "contains": "1. project\n   URI: file:///project"},
    # It asks for the roots again, and logs how many there are.
    "update-roots": {"contains": "Roots updated: 2 root(s)"},
}

# PyPI's mcp-server-time, which offers tools only.
TIME = {
    "capabilities": {"has": ["tools"]},
    "list": {"names": ["convert_time", "get_current_time"]},
    "call": {"tool": "get_current_time", "arguments": {"timezone": "Asia/Tokyo"}, "contains": "+09:00"},
    "call-again": {
        "tool": "convert_time",
        "arguments": {"source_timezone": "Asia/Tokyo", "time": "12:00", "target_timezone": "Etc/UTC"},
        "contains": "T03:00:00+00:00",
    },
    "error": {"tool": "get_current_time", "arguments": {"timezone": "Nowhere/Land"}, "contains": "Nowhere/Land"},
    "ping": {},
}


def through_tollgate(steps, is_alone):
    """The steps of a server as Tollgate changes them: what is too large is cut, and the tool that reads on is listed.

    Where the server is alone, that tool is elsewhere.
    """
    changed = dict(steps)
    if not is_alone:
        changed["list"] = {**steps["list"], "names": [*steps["list"]["names"], BESIDE]}
    large = changed.pop("structured-large", None)
    if large:
        reader = {"reader": READER, "endpoint": ENDPOINT} if is_alone else {"reader": BESIDE}
        says = ["[Incomplete: ", "do not invent the rest", "The tool reported no error", *reader.values()]
        changed["cut"] = {**large, "says": says, **reader}
    return changed


# Tollgate's own server, by which results of servers with `builtin = false` are read on.
TOLLGATE = {
    "capabilities": {"has": ["tools"]},
    "list": {"names": [READER]},
    "error": {
        "tool": READER,
        "arguments": {"handle": "unheard of"},
        "contains": "no result of yours is kept under this handle",
    },
    "error-arguments": {"tool": READER, "arguments": {}, "contains": "handle"},
    "ping": {},
}


@dataclasses.dataclass(frozen=True)
class Impossible:
    """Steps that some cells cannot take, and why. What is not given covers all."""

    steps: tuple
    why: str
    server: str = ""
    revision: str = ""

    def covers(self, server, revision, step):
        return (
            step in self.steps
            and self.server in ("", server)
            and self.revision in ("", revision)
        )

    def __str__(self):
        where = [part for part in (self.server, self.revision) if part]
        return f"{' '.join(where)}: {' '.join(self.steps)}: {self.why}"


IMPOSSIBLE = [
    Impossible(("ping",), "ping ended with the sessions", revision=MODERN),
    Impossible(("subscribe",), "version 1 never declares `resources.subscribe`", server="python-legacy"),
    Impossible(("subscribe",), "the library has neither `resources/subscribe` nor a listen stream", server="fastmcp"),
    Impossible(("changed",), "the library serves no `subscriptions/listen`", server="fastmcp", revision=MODERN),
    Impossible(("cancel",), "none of its tools notices that it was cancelled", server="everything"),
]
