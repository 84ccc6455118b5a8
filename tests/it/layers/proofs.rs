//! The types that prove something: each is made in one place, and nowhere else.

use syn::{
    Expr, ExprCall, ExprStruct, Fields, ItemImpl, ItemStruct, Type, Visibility,
    visit::{self, Visit},
};

use super::{paths::Source, sources};

/// A proof, and where alone it is made: a file (and the modules below it), or a room.
const PROOFS: &[(&str, &str)] = &[
    ("Permit", "policy/decide"),
    ("LegPermit", "policy/leg"),
    ("ProxyPermit", "policy/proxy/decide"),
    ("Target", "address/target"),
    ("JudgedAddr", "address/judge"),
    ("Recorded", "audit/journal"),
    ("PinnedTool", "catalog"),
    ("Consent", "approval"),
    ("Caller", "identity"),
];

/// Ways around a constructor that a derive opens.
const OPEN: &[&str] = &["Default", "Deserialize", "From", "Into"];

fn home(proof: &str) -> Option<&'static str> {
    PROOFS
        .iter()
        .find(|(name, _)| *name == proof)
        .map(|(_, home)| *home)
}

/// What is wrong with how `source` treats proofs.
fn faults(source: &Source) -> Vec<String> {
    let mut finder = Finder {
        module: source.file.trim_end_matches(".rs").to_owned(),
        subject: None,
        faults: Vec::new(),
    };
    finder.visit_file(&source.syntax);
    let file = &source.file;
    finder
        .faults
        .into_iter()
        .map(|fault| format!("src/{file}: {fault}"))
        .collect()
}

struct Finder {
    module: String,
    /// The type whose `impl` is visited: what `Self` means.
    subject: Option<String>,
    faults: Vec<String>,
}

impl Finder {
    fn at_home(&self, home: &str) -> bool {
        self.module
            .strip_prefix(home)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    fn made(&mut self, path: &syn::Path) {
        let Some(last) = path.segments.last() else {
            return;
        };
        let name = if last.ident == "Self" {
            self.subject.clone().unwrap_or_default()
        } else {
            last.ident.to_string()
        };
        if let Some(home) = home(&name).filter(|home| !self.at_home(home)) {
            self.faults
                .push(format!("makes a `{name}`, which only src/{home} may"));
        }
    }
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        let name = match &*item.self_ty {
            Type::Path(path) => path.path.segments.last().map(|part| part.ident.to_string()),
            _ => None,
        };
        let outer = std::mem::replace(&mut self.subject, name);
        visit::visit_item_impl(self, item);
        self.subject = outer;
    }

    fn visit_item_struct(&mut self, item: &'ast ItemStruct) {
        let name = item.ident.to_string();
        let Some(home) = home(&name) else { return };
        if !self.at_home(home) {
            self.faults.push(format!(
                "defines a `{name}` of its own; src/{home} owns the name"
            ));
        }
        let open = |fields: &Fields| {
            fields
                .iter()
                .any(|field| !matches!(field.vis, Visibility::Inherited))
        };
        if open(&item.fields) || matches!(item.fields, Fields::Unit) {
            self.faults.push(format!(
                "`{name}` proves nothing: its fields are not private"
            ));
        }
        for attribute in item
            .attrs
            .iter()
            .filter(|attribute| attribute.path().is_ident("derive"))
        {
            let checked = attribute.parse_nested_meta(|derive| {
                let last = derive
                    .path
                    .segments
                    .last()
                    .map(|part| part.ident.to_string());
                if let Some(derived) = last.filter(|last| OPEN.contains(&last.as_str())) {
                    self.faults
                        .push(format!("`{name}` proves nothing: it derives `{derived}`"));
                }
                Ok(())
            });
            checked.expect("a list of derives");
        }
    }

    fn visit_expr_struct(&mut self, literal: &'ast ExprStruct) {
        self.made(&literal.path);
        visit::visit_expr_struct(self, literal);
    }

    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        if let Expr::Path(function) = &*call.func {
            self.made(&function.path);
        }
        visit::visit_expr_call(self, call);
    }
}

#[test]
fn proofs_are_made_where_they_belong() {
    let faults: Vec<_> = sources().iter().flat_map(faults).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The test tests itself: each of these is found.
#[test]
fn forged_proofs_are_found() {
    for text in [
        "fn f() -> Permit { Permit { server } }",
        "fn f() -> crate::audit::Recorded<Intent> { crate::audit::Recorded(PhantomData) }",
        "impl JudgedAddr { fn any() -> Self { Self { address, port } } }",
        "impl From<IpAddr> for JudgedAddr { fn from(ip: IpAddr) -> Self { Self(ip) } }",
        "pub struct Target;",
    ] {
        let forged = Source::parse("egress/dial.rs", text);
        assert!(!faults(&forged).is_empty(), "`{text}` passed");
    }
    for text in [
        "#[derive(Clone, Default)] pub struct Permit { generation: u64 }",
        "pub struct Permit { pub generation: u64 }",
        "pub struct Permit;",
    ] {
        assert_eq!(
            faults(&Source::parse("policy/decide.rs", text)).len(),
            1,
            "`{text}` passed"
        );
    }
    let honest = "pub struct Permit { generation: u64 } fn f() -> Permit { Permit { generation } }";
    assert_eq!(
        faults(&Source::parse("policy/decide.rs", honest)),
        Vec::<String>::new()
    );
    assert_eq!(
        faults(&Source::parse(
            "policy/decide/rules.rs",
            "fn f() { Permit { generation } }"
        )),
        Vec::<String>::new()
    );
}
