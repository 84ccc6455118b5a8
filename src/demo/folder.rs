//! The demo's policy and state, in a temporary folder.

use std::{
    env,
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write},
    net::SocketAddr,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use super::{DemoError, REBINDING_NAME};

/// A folder of this run alone; removed when dropped.
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
}

impl Folder {
    /// Makes the folder, and writes a policy for a tool server and a name server that listen at these addresses.
    pub fn create(tools: SocketAddr, names: SocketAddr) -> Result<Self, DemoError> {
        let root = env::temp_dir().join(format!("tollgate-demo-{}", &crate::id::token()[..16]));
        let folder = Self { root };
        folder
            .write(tools, names)
            .map_err(|source| DemoError::Folder {
                folder: folder.root.clone(),
                source,
            })?;
        Ok(folder)
    }

    /// The policy folder, for `--policy`.
    pub fn policy(&self) -> PathBuf {
        self.root.join("policy")
    }

    /// Where the records are.
    pub fn records(&self) -> PathBuf {
        self.state().join("audit")
    }

    fn state(&self) -> PathBuf {
        self.root.join("state")
    }

    fn write(&self, tools: SocketAddr, names: SocketAddr) -> io::Result<()> {
        let servers = self.policy().join("servers");
        for folder in [&self.root, &self.policy(), &servers, &self.state()] {
            DirBuilder::new().mode(0o700).create(folder)?;
        }
        let port = tools.port();
        // The path alone is not the demo's own text; a JSON string is also a TOML string.
        let state = serde_json::Value::from(self.state().to_string_lossy().as_ref());
        file(
            &self.policy().join("tollgate.toml"),
            &format!(
                r#"# Written by `tollgate demo`.
state_dir = {state}

[listen]
agents = "127.0.0.1:0"           # port 0: any free one
egress = ""
web = ""
ops = ""

[identity.local]                 # one user, who is an admin, without a credential
user = "demo"

[dns]
servers = ["{names}"]
"#
            ),
        )?;
        file(
            &self.policy().join("egress.toml"),
            &format!(
                r#"# The tool server of the demo lives on loopback, so its exact host and port are opened, for it alone.
[[private]]
host = "127.0.0.1"
port = {port}
for = ["server:tools"]

# A name may lead to loopback only where the addresses are said. That it leads elsewhere later opens nothing.
[[private]]
host = "{REBINDING_NAME}"
port = {port}
addresses = ["127.0.0.1/32"]
for = ["server:rebinding"]
"#
            ),
        )?;
        for (name, text) in [
            (
                "tools",
                format!(
                    "url = \"http://127.0.0.1:{port}/mcp\"\nread_only = [\"get_*\", \"count_*\"]\n"
                ),
            ),
            (
                "metadata",
                "url = \"https://169.254.169.254/mcp\"\nread_only = [\"*\"]\n".to_owned(),
            ),
            (
                "private",
                "url = \"https://10.20.30.40/mcp\"\nread_only = [\"*\"]\n".to_owned(),
            ),
            (
                "rebinding",
                format!(
                    "url = \"http://{REBINDING_NAME}:{port}/mcp\"\ninsecure_http = true\nread_only = [\"get_*\"]\n"
                ),
            ),
        ] {
            file(&servers.join(format!("{name}.toml")), &text)?;
        }
        Ok(())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left over lies in the folder for temporary files.
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn file(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())
}
