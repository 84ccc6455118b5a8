//! Which settings a running process takes up.

use super::Settings;

impl Settings {
    /// These settings as a process that runs with `running` can take them up: what needs a restart stays as it is, and
    /// is named.
    #[must_use]
    pub fn taken_up_by(mut self, running: &Self) -> (Self, Vec<&'static str>) {
        let mut kept = Vec::new();
        let mut keep = |key, changed: bool| {
            if changed {
                kept.push(key);
            }
        };
        keep("state_dir", self.state_dir != running.state_dir);
        keep("store", self.store != running.store);
        keep("listen.agents", self.listen.agents != running.listen.agents);
        keep("listen.egress", self.listen.egress != running.listen.egress);
        keep("listen.ops", self.listen.ops != running.listen.ops);
        keep("listen.web", self.listen.web != running.listen.web);
        keep("listen.tls", self.listen.tls != running.listen.tls);
        keep(
            "listen.behind_tls",
            self.listen.behind_tls != running.listen.behind_tls,
        );
        keep("identity", self.identity.method != running.identity.method);
        keep("audit", self.audit != running.audit);
        keep("vault", self.vault != running.vault);

        self.state_dir = running.state_dir.clone();
        self.store = running.store.clone();
        let allowed_origins = std::mem::take(&mut self.listen.allowed_origins);
        self.listen = running.listen.clone();
        self.listen.allowed_origins = allowed_origins;
        self.identity.method = running.identity.method.clone();
        self.audit = running.audit;
        self.vault = running.vault.clone();
        (self, kept)
    }
}
