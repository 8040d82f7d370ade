//! The address of a database, from wherever an operator keeps it.
//!
//! Promises: a password is taken from a file that nobody else can read, from the environment or from the settings, never from an
//! argument, which everybody on the machine can read while the command runs.
//! Must not know: what is done with the database.

use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use client::endpoint;
use host::blobs::BlobSettings;
use host::migrate::has_password;

use crate::serve::settings;

/// Holds the address, for those who want it in no file.
const VARIABLE: &str = "GREENROOM_POSTGRES";
/// Says where large bodies lie.
const BLOBS_VARIABLE: &str = "GREENROOM_BLOBS";
/// No address is longer.
const ADDRESS_BYTES_MAX: u64 = 64 * 1_024;

/// An address that came as an argument.
pub(crate) fn check_argument(option: &str, address: &str) -> anyhow::Result<()> {
    if has_password(address) {
        bail!(
            "{option} has a password in it, which everybody on this machine can read while the command runs; \
             put the address into a file that only you can read and pass --database-file FILE, or into {VARIABLE}"
        );
    }
    Ok(())
}

/// The address in a file, in the environment, or in the settings of a data directory.
pub(crate) fn find_address(file: Option<&Path>, data: Option<&Path>) -> anyhow::Result<String> {
    if let Some(file) = file {
        return read_address(file);
    }
    match std::env::var(VARIABLE) {
        Ok(address) if !address.trim().is_empty() => return Ok(address.trim().to_owned()),
        Ok(_) | Err(std::env::VarError::NotPresent) => {}
        Err(error @ std::env::VarError::NotUnicode(_)) => bail!("{VARIABLE}: {error}"),
    }
    let data: PathBuf = endpoint::data_directory(data)?;
    let config = data.join(host::CONFIG_FILE);
    settings(data, None)?.settings.postgres.with_context(|| {
        format!(
            "no database is configured: set `journal = \"postgres\"` and `postgres = \"..\"` in {}, name the data directory of a node with --data, \
             set {VARIABLE}, or pass --database or --database-file",
            config.display()
        )
    })
}

/// Where large bodies of spaces lie, by the environment or the settings of a data directory.
pub(crate) fn find_blobs(data: Option<&Path>) -> anyhow::Result<Option<BlobSettings>> {
    match std::env::var(BLOBS_VARIABLE) {
        Ok(store) if !store.is_empty() => return Ok(Some(BlobSettings::at(&store))),
        Ok(_) | Err(std::env::VarError::NotPresent) => {}
        Err(error @ std::env::VarError::NotUnicode(_)) => bail!("{BLOBS_VARIABLE}: {error}"),
    }
    let data: PathBuf = endpoint::data_directory(data)?;
    Ok(settings(data, None)?.settings.blobs)
}

fn read_address(file: &Path) -> anyhow::Result<String> {
    let opened = fs::File::open(file).with_context(|| format!("{}", file.display()))?;
    let metadata = opened.metadata()?;
    let mut text = String::new();
    let read = opened.take(ADDRESS_BYTES_MAX).read_to_string(&mut text);
    read.with_context(|| format!("{}", file.display()))?;
    let address = text.trim();
    if address.is_empty() {
        bail!("{} has no address of a database in it", file.display());
    }
    if has_password(address) && metadata.mode() & 0o077 != 0 {
        bail!(
            "{} has a password in it and can be read by others: chmod 600 {}",
            file.display(),
            file.display()
        );
    }
    Ok(address.to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_password_is_no_argument() {
        for address in [
            "postgres://ann:secret@localhost/greenroom",
            "host=/run/postgresql password=secret dbname=greenroom",
            "host=/run/postgresql password = 'secret' nonsense",
            "postgres://ann:sec ret@localhost:nonsense/greenroom",
        ] {
            let refused = check_argument("--database", address).unwrap_err().to_string();
            assert!(refused.contains("--database-file"), "{refused}");
            assert!(!refused.contains("sec"), "{refused}");
        }
        for address in ["postgres://ann@localhost/greenroom", "dbname=greenroom"] {
            check_argument("--database", address).unwrap();
        }
    }

    #[test]
    fn a_file_with_a_password_is_read_by_its_owner_alone() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("address");
        fs::write(&file, "postgres://ann:secret@localhost/greenroom\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        let refused = read_address(&file).unwrap_err().to_string();
        assert!(refused.contains("chmod 600"), "{refused}");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(read_address(&file).unwrap(), "postgres://ann:secret@localhost/greenroom");
        fs::write(&file, " \n").unwrap();
        assert!(read_address(&file).is_err());
    }
}
