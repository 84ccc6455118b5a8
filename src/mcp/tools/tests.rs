use super::*;

fn read(definition: &str) -> Tool {
    Tool::read(definition).expect("a definition")
}

#[test]
fn whether_a_tool_can_be_called_is_read_with_it() {
    const TASK: &str = "it can be called as a task only, and tasks are not relayed";
    for (tool, legacy, modern) in [
        (r#"{"name":"a"}"#, None, None),
        (
            r#"{"name":"a","title":"x-mcp-header","x-mcp-header":7}"#,
            None,
            None,
        ),
        (
            r#"{"inputSchema":{"properties":{"x-mcp-header":{}}},"name":"a"}"#,
            None,
            None,
        ),
        (
            r#"{"inputSchema":{"x-mcp-header":"B"},"name":"a"}"#,
            None,
            Some("`x-mcp-header` in `` is not on a property that only `properties` lead to"),
        ),
        (
            r#"{"execution":{"taskSupport":"required"},"name":"a"}"#,
            Some(TASK),
            Some(TASK),
        ),
        (
            r#"{"execution":{"taskSupport":"optional"},"name":"a"}"#,
            None,
            None,
        ),
        (
            r#"{"execution":{"taskSupport":["required"]},"name":"a"}"#,
            None,
            None,
        ),
        (r#"{"execution":"required","name":"a"}"#, None, None),
    ] {
        let found = read(tool);
        let unfit = |era| found.unfit(era).map(|unfit| unfit.to_string());
        assert_eq!(unfit(Era::Legacy).as_deref(), legacy, "{tool}");
        assert_eq!(unfit(Era::Modern).as_deref(), modern, "{tool}");
    }
}

#[test]
fn only_a_plain_hint_says_that_a_tool_reads() {
    for (annotations, reads) in [
        (r#"{"readOnlyHint":true}"#, true),
        (r#"{"destructiveHint":false,"readOnlyHint":true}"#, true),
        (r#"{"readOnlyHint":false}"#, false),
        (r#"{"readOnlyHint":"true"}"#, false),
        (r#"{"readOnlyHint":1}"#, false),
        (r#"{"readonlyhint":true}"#, false),
        (r#"{"READONLYHINT":false,"readOnlyHint":true}"#, false),
        (r#"{"destructiveHint":true,"readOnlyHint":true}"#, false),
        (r#"[{"readOnlyHint":true}]"#, false),
        ("{}", false),
    ] {
        let tool = read(&format!(r#"{{"annotations":{annotations},"name":"a"}}"#));
        assert_eq!(tool.read_only_hint, reads, "{annotations}");
    }
    assert!(!read(r#"{"name":"a","readOnlyHint":true}"#).read_only_hint);
}

#[test]
fn schemas_are_found_where_they_stand() {
    const TOOL: &str = r#"{"inputSchema":{"type":"object"},"name":"a","outputSchema":{}}"#;
    let tool = read(TOOL);
    assert_eq!(
        &TOOL[tool.input_schema.expect("a schema")],
        r#"{"type":"object"}"#
    );
    assert!(tool.has_output_schema);
    let bare = read(r#"{"name":"a"}"#);
    assert_eq!((bare.input_schema, bare.has_output_schema), (None, false));
}
