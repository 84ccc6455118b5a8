//! What is known of some authorization servers: settings by the host of their issuer, laid under what a file says.

use super::{OAuth, Pkce, Registration, Resource, TokenAuth};
use crate::address::Target;

/// Settings for the issuers of some hosts.
struct Preset {
    name: &'static str,
    /// Each exact, or `*.` and a suffix whose apex is left out.
    hosts: &'static [&'static str],
    registration: Option<Registration>,
    trusted_issuer: Option<&'static str>,
    pkce: Option<Pkce>,
    omits_resource: bool,
    refresh_scope: Option<bool>,
    token_auth: Option<TokenAuth>,
    extra_authorize_params: &'static [(&'static str, &'static str)],
}

const NOTHING: Preset = Preset {
    name: "",
    hosts: &[],
    registration: None,
    trusted_issuer: None,
    pkce: None,
    omits_resource: false,
    refresh_scope: None,
    token_auth: None,
    extra_authorize_params: &[],
};

static PRESETS: &[Preset] = &[
    // It refuses `resource` (AADSTS9010010), says nothing of PKCE though it knows S256, registers nobody, and gives a
    // token of the wrong audience to a refresh without scopes (AADSTS90009).
    Preset {
        name: "entra",
        hosts: &[
            "login.microsoftonline.com",
            "login.microsoftonline.us",
            "login.partner.microsoftonline.cn",
            "sts.windows.net",
            "*.ciamlogin.com",
        ],
        registration: Some(Registration::PreRegistered),
        pkce: Some(Pkce::AssumeS256),
        omits_resource: true,
        refresh_scope: Some(true),
        ..NOTHING
    },
    // It gives a refresh token only to who asks for offline access, and after the first time only with the consent page.
    Preset {
        name: "google",
        hosts: &["accounts.google.com"],
        extra_authorize_params: &[("access_type", "offline"), ("prompt", "consent")],
        ..NOTHING
    },
    // It registers nobody, and takes the secret in the body.
    Preset {
        name: "github",
        hosts: &["github.com"],
        registration: Some(Registration::PreRegistered),
        token_auth: Some(TokenAuth::Post),
        ..NOTHING
    },
    // It refuses a refresh that names scopes.
    Preset {
        name: "salesforce",
        hosts: &[
            "login.salesforce.com",
            "test.salesforce.com",
            "*.my.salesforce.com",
        ],
        refresh_scope: Some(false),
        ..NOTHING
    },
    // Its metadata names an issuer without the path that its own resource metadata gives.
    Preset {
        name: "atlassian",
        hosts: &["auth.atlassian.com"],
        trusted_issuer: Some("https://auth.atlassian.com"),
        ..NOTHING
    },
    // Its metadata names an issuer on another host.
    Preset {
        name: "atlassian-v1",
        hosts: &["mcp.atlassian.com"],
        trusted_issuer: Some("https://cf.mcp.atlassian.com"),
        ..NOTHING
    },
];

/// The preset that a host belongs to, be it as an issuer's, or as that of an issuer that the preset trusts.
pub fn preset_of(host: &str) -> Option<&'static str> {
    let mut presets = PRESETS.iter();
    let preset = presets.find(|preset| preset.is_for(host) || preset.trusts(host))?;
    Some(preset.name)
}

impl OAuth {
    /// Whether nobody will be able to connect: the authorization server that the file names is known to register nobody by
    /// itself, and the file names neither a client nor a place to register one.
    pub fn lacks_client(&self) -> bool {
        let issuer = self.issuer.as_deref().map(Target::from_wire);
        let Some(Ok(issuer)) = issuer else {
            return false;
        };
        let host = issuer.host().to_string();
        let mut presets = PRESETS.iter().filter(|preset| preset.is_for(&host));
        let endpoints = self.endpoints.as_ref();
        presets.any(|preset| preset.registration == Some(Registration::PreRegistered))
            && self.client.is_none()
            && endpoints.is_none_or(|endpoints| endpoints.registration.is_none())
    }

    /// These knobs with the presets for an issuer at `issuer_host` (lower case, without a port) laid under what the file
    /// says; [`OAuth::presets`] names those that changed something. Where the file names an issuer this was done when it
    /// was read. Where the issuer is discovered, it has to be done as soon as its host is known (from
    /// `authorization_servers`, before its metadata is asked for), and once for each issuer, from the server's own knobs:
    /// presets of one issuer are no words about another.
    #[must_use]
    pub fn with_presets(&self, issuer_host: &str) -> Self {
        let mut knobs = self.clone();
        let fitting = PRESETS.iter().filter(|preset| preset.is_for(issuer_host));
        for preset in fitting {
            let before = knobs.clone();
            preset.lay_under(&mut knobs);
            if knobs != before && !knobs.presets.contains(&preset.name) {
                knobs.presets.push(preset.name);
            }
        }
        knobs
    }
}

impl Preset {
    fn is_for(&self, host: &str) -> bool {
        let mut hosts = self.hosts.iter();
        hosts.any(|own| match own.strip_prefix('*') {
            Some(suffix) => host.len() > suffix.len() && host.ends_with(suffix),
            None => *own == host,
        })
    }

    fn trusts(&self, host: &str) -> bool {
        let issuer = self.trusted_issuer.map(Target::from_wire);
        issuer.is_some_and(|issuer| issuer.is_ok_and(|issuer| issuer.host().to_string() == host))
    }

    fn lay_under(&self, knobs: &mut OAuth) {
        let written = std::mem::take(&mut knobs.written);
        let open = |key: &str| !written.contains(&key);
        if let Some(registration) = self.registration.filter(|_| open("registration")) {
            knobs.registration = registration;
        }
        if let Some(issuer) = self.trusted_issuer.filter(|_| open("trusted_issuer")) {
            knobs.trusted_issuer = Some(issuer.into());
        }
        if let Some(pkce) = self.pkce.filter(|_| open("pkce")) {
            knobs.pkce = pkce;
        }
        if self.omits_resource && open("resource") {
            knobs.resource = Resource::Omit;
        }
        if let Some(sends) = self.refresh_scope.filter(|_| open("refresh_scope")) {
            knobs.refresh_scope = sends;
        }
        if let Some(method) = self.token_auth.filter(|_| open("token_auth_method")) {
            knobs.token_auth = Some(method);
        }
        // Of parameters, the file's words are about each one that it names.
        for (name, value) in self.extra_authorize_params {
            let params = &mut knobs.extra_authorize_params;
            if params.iter().all(|(own, _)| **own != **name) {
                params.push(((*name).into(), (*value).into()));
            }
        }
        knobs.written = written;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(knobs: &OAuth) -> Vec<(&str, &str)> {
        let params = knobs.extra_authorize_params.iter();
        params.map(|(name, value)| (&**name, &**value)).collect()
    }

    #[test]
    fn hosts_of_one_preset_are_one_provider() {
        for (host, preset) in [
            ("login.microsoftonline.com", Some("entra")),
            ("sts.windows.net", Some("entra")),
            ("contoso.ciamlogin.com", Some("entra")),
            ("ciamlogin.com", None),
            ("mcp.atlassian.com", Some("atlassian-v1")),
            ("cf.mcp.atlassian.com", Some("atlassian-v1")),
            ("auth.atlassian.com", Some("atlassian")),
            ("oauth2.googleapis.com", None),
            ("accounts.google.com.evil.test", None),
        ] {
            assert_eq!(preset_of(host), preset, "{host}");
        }
    }

    #[test]
    fn each_preset_is_for_its_hosts_and_changes_what_it_says() {
        let plain = OAuth::default();
        let entra = plain.with_presets("login.microsoftonline.com");
        assert_eq!(entra.presets, ["entra"]);
        assert_eq!(entra.pkce, Pkce::AssumeS256);
        assert_eq!(entra.resource, Resource::Omit);
        assert_eq!(entra.registration, Registration::PreRegistered);
        assert!(entra.refresh_scope);
        let external = plain.with_presets("contoso.ciamlogin.com");
        assert_eq!(external.presets, ["entra"]);

        let google = plain.with_presets("accounts.google.com");
        assert_eq!(google.presets, ["google"]);
        assert_eq!(
            params(&google),
            [("access_type", "offline"), ("prompt", "consent")]
        );

        let github = plain.with_presets("github.com");
        assert_eq!(github.registration, Registration::PreRegistered);
        assert_eq!(github.token_auth, Some(TokenAuth::Post));

        let issuer = |host| plain.with_presets(host).trusted_issuer;
        assert_eq!(
            issuer("auth.atlassian.com").as_deref(),
            Some("https://auth.atlassian.com")
        );
        assert_eq!(
            issuer("mcp.atlassian.com").as_deref(),
            Some("https://cf.mcp.atlassian.com")
        );
        // Sending no scope is what is done anyway, so nothing changes; the file's `send` would stay.
        assert_eq!(plain.with_presets("login.salesforce.com"), plain);
    }

    #[test]
    fn other_hosts_get_none() {
        for host in [
            "ciamlogin.com",
            "evilciamlogin.com",
            "github.com.evil.test",
            "api.github.com",
            "login.microsoftonline.com.evil.test",
            "GITHUB.com",
            "auth.example.com",
            "",
        ] {
            assert_eq!(
                OAuth::default().with_presets(host),
                OAuth::default(),
                "{host}"
            );
        }
    }

    #[test]
    fn what_the_file_says_stands() {
        let file = OAuth {
            resource: Resource::Exactly("api://app".into()),
            refresh_scope: false,
            extra_authorize_params: vec![("prompt".into(), "select_account".into())],
            written: vec!["resource", "refresh_scope", "extra_authorize_params"],
            ..OAuth::default()
        };
        let entra = file.with_presets("login.microsoftonline.com");
        assert_eq!(entra.resource, Resource::Exactly("api://app".into()));
        assert!(!entra.refresh_scope);
        assert_eq!(entra.pkce, Pkce::AssumeS256);
        assert_eq!(entra.written, file.written);
        let google = file.with_presets("accounts.google.com");
        assert_eq!(
            params(&google),
            [("prompt", "select_account"), ("access_type", "offline")]
        );
    }

    #[test]
    fn presets_are_laid_once_and_never_on_one_another() {
        let once = OAuth::default().with_presets("accounts.google.com");
        assert_eq!(once.with_presets("accounts.google.com"), once);
    }

    #[test]
    fn the_readme_lists_them() {
        let readme = include_str!("../../policy/README.md");
        for preset in PRESETS {
            let start = format!("| {} |", preset.name);
            let row = readme.lines().find(|line| line.starts_with(&start));
            let row = row.unwrap_or_else(|| panic!("no row for {}", preset.name));
            for host in preset.hosts {
                assert!(row.contains(&host.replace('*', "\\*")), "{row}: {host}");
            }
            assert!(
                row.contains(preset.trusted_issuer.unwrap_or_default()),
                "{row}"
            );
        }
    }
}
