//! Secrets from where the settings say they are.

use std::{env, fmt, path::Path};

use rustls::{
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    sign::CertifiedKey,
};

use crate::{
    config::{self, Settings, Tls},
    secret::{Secret, Source},
    table::Fault,
    vault::Kek,
};

/// Certificate chain and key of a listener, both PEM, known to fit.
pub struct TlsMaterial {
    /// The chain, leaf first.
    pub chain: Vec<u8>,
    /// The private key.
    pub key: Secret,
}

impl fmt::Debug for TlsMaterial {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("TlsMaterial(…)")
    }
}

impl PartialEq for TlsMaterial {
    fn eq(&self, other: &Self) -> bool {
        self.chain == other.chain && self.key.expose() == other.key.expose()
    }
}

/// Reads what `listen.tls` names; `read` reads files as the policy folder's are read.
pub(super) fn resolve(
    tls: &Tls,
    folder: &Path,
    read: &dyn Fn(&str) -> Result<Vec<u8>, String>,
) -> Result<TlsMaterial, Fault> {
    let chain = secret(&tls.cert, folder, read).map_err(|why| at("listen.tls.cert", &why))?;
    let key = secret(&tls.key, folder, read).map_err(|why| at("listen.tls.key", &why))?;
    fit(&chain, &key).map_err(|why| at("listen.tls", &why))?;
    Ok(TlsMaterial {
        chain,
        key: Secret::new(key),
    })
}

/// Looks at the key that `[vault] key` names in a file, or in a variable that is set here; a fault where it is none, or
/// others could read it. What is in a credential only the process itself can see.
pub(super) fn vault_key(settings: &Settings, folder: &Path) -> Option<Fault> {
    let source = settings.vault.key.as_ref()?;
    let seen = match source {
        Source::File(_) => true,
        Source::Env(name) => env::var_os(name).is_some_and(|value| !value.is_empty()),
        Source::Credential(_) => false,
    };
    if !seen {
        return None;
    }
    let error = Kek::read(source, folder).err()?;
    Some(at("vault.key", &error.to_string()))
}

fn at(key: &str, why: &str) -> Fault {
    Fault {
        key: key.to_owned(),
        ..Fault::whole(config::FILE, why)
    }
}

/// Reads the secret that a source names; a relative path stands beside the files of `folder`.
pub(super) fn secret(
    source: &Source,
    folder: &Path,
    read: &dyn Fn(&str) -> Result<Vec<u8>, String>,
) -> Result<Vec<u8>, String> {
    match source {
        Source::File(path) => {
            read(path).map_err(|why| format!("`{}`: {why}", folder.join(path).display()))
        }
        Source::Env(name) => match env::var(name) {
            Ok(value) if !value.is_empty() => Ok(value.into_bytes()),
            _ => Err(format!(
                "the variable `{name}` is not set; set it, or name another source"
            )),
        },
        Source::Credential(name) => {
            let folder = env::var("CREDENTIALS_DIRECTORY").map_err(|_| {
                format!("there is no credential `{name}`, since systemd passed none; add LoadCredential= to the unit")
            })?;
            let path = Path::new(&folder).join(name).display().to_string();
            read(&path).map_err(|why| format!("credential `{name}`: {why}"))
        }
    }
}

fn fit(chain: &[u8], key: &[u8]) -> Result<(), String> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain).collect();
    let chain = chain.ok().filter(|chain| !chain.is_empty());
    let chain = chain.ok_or("cert holds no certificate chain in PEM form; export it again")?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(
        |_| "key holds no private key in PEM form; export it again, without a passphrase",
    )?;
    CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider())
        .map_err(|error| format!("cert and key cannot be used together ({error}); name a pair"))?;
    Ok(())
}
