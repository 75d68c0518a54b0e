//! Names of files that several backups share: the table's own name, followed by data that distinguishes files with
//! equal numbers.

use ashlar_base::FileNumber;
use std::fmt;

/// A name in `shared_checksum/`.
///
/// ```text
/// NUMBER_sSESSION_SIZE.sst   NUMBER_sSESSION.sst   NUMBER_CRC_SIZE.sst|blob
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SharedName {
    /// A table with the session that wrote it.
    Session {
        /// The table's number.
        number: FileNumber,
        /// The session id.
        session: String,
        /// Its length; not in all naming schemes.
        size: Option<u64>,
    },
    /// The old scheme for tables, and the only one for blob files.
    Checksum {
        /// The file's number.
        number: FileNumber,
        /// Its CRC-32C, unmasked.
        checksum: u32,
        /// Its length.
        size: u64,
        /// `sst` or `blob`.
        extension: &'static str,
    },
}

impl SharedName {
    /// Parses a name. `None`: the name has another form.
    pub fn parse(name: &str) -> Option<SharedName> {
        let (stem, extension) = name.rsplit_once('.')?;
        let extension = ["sst", "blob"].into_iter().find(|known| *known == extension)?;
        let (number, rest) = stem.split_once('_')?;
        let number = FileNumber(decimal(number)?);
        match rest.strip_prefix('s') {
            Some(session) if extension == "sst" => {
                let (session, size) = match session.split_once('_') {
                    Some((session, size)) => (session, Some(decimal(size)?)),
                    None => (session, None),
                };
                let valid = !session.is_empty() && session.bytes().all(|byte| byte.is_ascii_alphanumeric());
                valid.then(|| SharedName::Session { number, session: session.to_owned(), size })
            }
            Some(_) => None,
            None => {
                let (checksum, size) = rest.split_once('_')?;
                let checksum = u32::try_from(decimal(checksum)?).ok()?;
                Some(SharedName::Checksum { number, checksum, size: decimal(size)?, extension })
            }
        }
    }

    /// The name that a file had in its database: the part before the first `_`, and the extension. For names of any
    /// scheme, `None` for those without an extension.
    pub fn original(name: &str) -> Option<String> {
        let (stem, extension) = name.rsplit_once('.')?;
        let number = stem.split_once('_').map_or(stem, |(number, _)| number);
        Some(format!("{number}.{extension}"))
    }
}

fn decimal(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

impl fmt::Display for SharedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SharedName::Session { number, session, size: Some(size) } => {
                write!(f, "{number}_s{session}_{size}.sst")
            }
            SharedName::Session { number, session, size: None } => write!(f, "{number}_s{session}.sst"),
            SharedName::Checksum { number, checksum, size, extension } => {
                write!(f, "{number}_{checksum}_{size}.{extension}")
            }
        }
    }
}
