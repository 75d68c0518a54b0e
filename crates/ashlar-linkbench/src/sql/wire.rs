//! A connection to MariaDB: the part of its client protocol that the SQL form needs, over a Unix socket.
//!
//! 1. Statements go as text, or are prepared once and executed with parameters. Rows come one at a time, in the binary form.
//! 2. Nothing that the server sends is trusted: lengths are checked against the packet, and a malformed packet is a fault.
//! 3. A connection that broke, or that got a malformed packet, answers every later call with that fault.
//!
//! Source: MariaDB's documentation of the client and server protocol.

use std::collections::HashMap;
use std::fmt;
use std::io::{BufReader, ErrorKind, Read, Write};
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// The longest payload of one packet. A longer one comes in several.
const LONGEST: usize = 0xff_ffff;
/// The most bytes of a row or a message, in all its packets.
const MOST: usize = 64 << 20;

/// What this client can do: protocol 4.1, transactions, authentication by plugins. Without `CLIENT_FOUND_ROWS`, so that a statement
/// reports the rows that changed, and not those that it found.
const CAPABILITIES: u32 = 0x1 | 0x4 | 0x200 | 0x2000 | 0x8000 | 0x8_0000;
/// `latin1_bin`: bytes come and go unchanged.
const LATIN1_BIN: u8 = 47;

const QUIT: u8 = 0x01;
const QUERY: u8 = 0x03;
const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;

const OK: u8 = 0x00;
const END: u8 = 0xfe;
const ERROR: u8 = 0xff;
/// A packet that begins with [`END`] is the end of rows only if it is this short.
const END_BYTES: usize = 9;

/// Types of columns and parameters.
const TINY: u8 = 1;
const SHORT: u8 = 2;
const LONG: u8 = 3;
const LONG_LONG: u8 = 8;
const INT24: u8 = 9;
const VAR_STRING: u8 = 253;
const TEXTS: [u8; 8] = [15, 246, 249, 250, 251, 252, 253, 254];

/// Why a statement failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The server refused it.
    Refused {
        /// The server's number.
        code: u16,
        /// The server's words.
        text: String,
    },
    /// The connection broke, or the server sent something else than the protocol says.
    Lost(String),
}

impl Fault {
    /// Whether the transaction met another one and can run again: a deadlock, or a wait for a lock that took too long.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Fault::Refused { code: 1213 | 1205, .. })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Refused { code, text } => write!(f, "the server refuses: {text} ({code})"),
            Fault::Lost(why) => write!(f, "the connection is lost: {why}"),
        }
    }
}

impl From<std::io::Error> for Fault {
    fn from(e: std::io::Error) -> Fault {
        Fault::Lost(match e.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => "no answer in time".to_owned(),
            _ => e.to_string(),
        })
    }
}

type Answer<T> = Result<T, Fault>;

/// A parameter of a prepared statement.
#[derive(Clone, Copy, Debug)]
pub enum Param<'a> {
    /// A number.
    Number(u64),
    /// Bytes.
    Bytes(&'a [u8]),
}

/// A prepared statement of one connection.
#[derive(Clone, Copy, Debug)]
pub struct Statement {
    id: u32,
    params: usize,
}

/// What a statement did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Rows that changed. A row that an insert found and changed counts as two.
    pub changed: u64,
    /// Rows that were returned.
    pub rows: u64,
}

/// A field of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Field {
    Null,
    Number(u64),
    Bytes(Range<usize>),
}

/// A row, valid until the next one is read.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    packet: &'a [u8],
    fields: &'a [Field],
}

impl Row<'_> {
    /// The number in column `at`. `None`: no such column, NULL, or bytes.
    pub fn number(&self, at: usize) -> Option<u64> {
        match self.fields.get(at)? {
            Field::Number(number) => Some(*number),
            Field::Null | Field::Bytes(_) => None,
        }
    }

    /// The bytes in column `at`. `None`: no such column, NULL, or a number.
    pub fn bytes(&self, at: usize) -> Option<&[u8]> {
        match self.fields.get(at)? {
            Field::Bytes(place) => self.packet.get(place.clone()),
            Field::Null | Field::Number(_) => None,
        }
    }
}

/// A connection.
#[derive(Debug)]
pub struct Connection {
    stream: BufReader<UnixStream>,
    out: Vec<u8>,
    packet: Vec<u8>,
    /// The number of the next packet of this exchange.
    sequence: u8,
    types: Vec<u8>,
    fields: Vec<Field>,
    /// Why the connection is not used again.
    broken: Option<Fault>,
    /// The statements that were prepared, by their text.
    statements: HashMap<String, Statement>,
}

impl Connection {
    /// Connects as the user `root`, which needs no password in a server of our own. Waits at most `patience` for each packet.
    ///
    /// # Errors
    /// Nothing listens at `socket`, the server does not answer in time, or the server refuses.
    pub fn open(socket: &Path, patience: Duration) -> Answer<Connection> {
        let stream = BufReader::new(UnixStream::connect(socket)?);
        let (out, packet, types, fields) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let statements = HashMap::new();
        let broken = None;
        let mut connection =
            Connection { stream, out, packet, sequence: 0, types, fields, broken, statements };
        connection.wait_at_most(Some(patience))?;
        connection.receive()?;
        match connection.packet.first() {
            Some(10) => {}
            Some(&ERROR) => return Err(refusal(&connection.packet)),
            _ => return Err(malformed("greeting")),
        }
        let out = &mut connection.out;
        out.clear();
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&CAPABILITIES.to_le_bytes());
        out.extend_from_slice(&(64_u32 << 20).to_le_bytes());
        out.push(LATIN1_BIN);
        out.extend_from_slice(&[0; 23]);
        // The user, the length of the answer to the challenge, the plugin that asks.
        out.extend_from_slice(b"root\0\0mysql_native_password\0");
        connection.send()?;
        connection.receive()?;
        if connection.packet.first() == Some(&END) {
            // The server asks for another plugin. Without a password each of them takes an empty answer.
            connection.out.clear();
            connection.out.extend_from_slice(&[0; 4]);
            connection.send()?;
            connection.receive()?;
        }
        connection.done()?;
        connection.wait_at_most(None)?;
        Ok(connection)
    }

    /// Sets how long later calls wait for each packet. `None`: without an end. A packet that does not come in time breaks the connection.
    ///
    /// # Errors
    /// `patience` is zero.
    pub fn wait_at_most(&self, patience: Option<Duration>) -> Answer<()> {
        Ok(self.stream.get_ref().set_read_timeout(patience)?)
    }

    /// Executes `text`, which returns no rows.
    ///
    /// # Errors
    /// The server refuses, or the connection broke.
    pub fn run(&mut self, text: &str) -> Answer<Done> {
        self.whole(|connection| {
            connection.ask(QUERY, text.as_bytes())?;
            connection.done()
        })
    }

    /// Does one exchange, unless an earlier one broke the connection.
    fn whole<T>(&mut self, exchange: impl FnOnce(&mut Connection) -> Answer<T>) -> Answer<T> {
        if let Some(fault) = &self.broken {
            return Err(fault.clone());
        }
        let done = exchange(self);
        if let Err(fault @ Fault::Lost(_)) = &done {
            self.broken = Some(fault.clone());
        }
        done
    }

    /// Prepares a statement, which lives as long as the connection. The same text is prepared once.
    ///
    /// # Errors
    /// As [`Connection::run`].
    pub fn prepare(&mut self, text: &str) -> Answer<Statement> {
        match self.statements.get(text) {
            Some(known) => Ok(*known),
            None => self.whole(|connection| connection.prepare_first(text)),
        }
    }

    fn prepare_first(&mut self, text: &str) -> Answer<Statement> {
        self.ask(PREPARE, text.as_bytes())?;
        if self.packet.first() == Some(&ERROR) {
            return Err(refusal(&self.packet));
        }
        let mut parts = Parts(self.packet.get(1..).unwrap_or_default());
        let head = (|| Some((parts.u32()?, parts.u16()?, parts.u16()?)))();
        let (id, columns, params) = head.ok_or_else(|| malformed("prepared statement"))?;
        for described in [params, columns] {
            if described > 0 {
                self.skip_descriptions(described.into())?;
            }
        }
        let statement = Statement { id, params: params.into() };
        self.statements.insert(text.to_owned(), statement);
        Ok(statement)
    }

    /// Executes a prepared statement, and calls `see` with each row.
    ///
    /// # Errors
    /// As [`Connection::run`], or there are not as many parameters as the statement has.
    pub fn execute(
        &mut self,
        statement: Statement,
        params: &[Param<'_>],
        mut see: impl FnMut(&Row<'_>),
    ) -> Answer<Done> {
        self.whole(|connection| connection.exchange(statement, params, &mut see))
    }

    fn exchange(
        &mut self,
        statement: Statement,
        params: &[Param<'_>],
        see: &mut impl FnMut(&Row<'_>),
    ) -> Answer<Done> {
        if params.len() != statement.params {
            return Err(Fault::Lost(format!("{} parameters for {}", params.len(), statement.params)));
        }
        self.begin(EXECUTE);
        self.out.extend_from_slice(&statement.id.to_le_bytes());
        self.out.extend_from_slice(&[0, 1, 0, 0, 0]);
        if !params.is_empty() {
            // No parameter is NULL, and their types follow.
            self.out.resize(self.out.len() + params.len().div_ceil(8), 0);
            self.out.push(1);
            for param in params {
                self.out.extend_from_slice(match param {
                    Param::Number(_) => &[LONG_LONG, 0x80],
                    Param::Bytes(_) => &[VAR_STRING, 0],
                });
            }
            for param in params {
                match param {
                    Param::Number(number) => self.out.extend_from_slice(&number.to_le_bytes()),
                    Param::Bytes(bytes) => {
                        put_length(&mut self.out, bytes.len());
                        self.out.extend_from_slice(bytes);
                    }
                }
            }
        }
        self.send()?;
        self.receive()?;
        match self.packet.first() {
            Some(&OK | &ERROR) => self.done(),
            _ => self.rows(see),
        }
    }

    /// Prepares `text` and executes it with `params`.
    ///
    /// # Errors
    /// As [`Connection::execute`].
    pub fn select(&mut self, text: &str, params: &[Param<'_>], see: impl FnMut(&Row<'_>)) -> Answer<Done> {
        let statement = self.prepare(text)?;
        self.execute(statement, params, see)
    }

    /// Reads the descriptions of the columns and then the rows.
    fn rows(&mut self, see: &mut impl FnMut(&Row<'_>)) -> Answer<Done> {
        let columns = Parts(&self.packet).length().ok_or_else(|| malformed("number of columns"))?;
        self.types.clear();
        for _ in 0..columns {
            self.receive()?;
            let column = column_type(&self.packet).ok_or_else(|| malformed("column"))?;
            self.types.push(column);
        }
        self.receive()?;
        let mut rows = 0;
        loop {
            self.receive()?;
            match self.packet.first() {
                Some(&ERROR) => return Err(refusal(&self.packet)),
                Some(&END) if self.packet.len() < END_BYTES => return Ok(Done { changed: 0, rows }),
                _ => {}
            }
            split(&self.packet, &self.types, &mut self.fields).ok_or_else(|| malformed("row"))?;
            rows += 1;
            see(&Row { packet: &self.packet, fields: &self.fields });
        }
    }

    /// Reads as many descriptions, and their end.
    fn skip_descriptions(&mut self, many: usize) -> Answer<()> {
        (0..=many).try_for_each(|_| self.receive())
    }

    /// The answer of a statement without rows.
    fn done(&mut self) -> Answer<Done> {
        match self.packet.first() {
            Some(&OK) => {}
            Some(&ERROR) => return Err(refusal(&self.packet)),
            _ => return Err(malformed("answer")),
        }
        let changed = Parts(self.packet.get(1..).unwrap_or_default()).length();
        changed.map(|changed| Done { changed, rows: 0 }).ok_or_else(|| malformed("answer"))
    }

    fn begin(&mut self, command: u8) {
        self.sequence = 0;
        self.out.clear();
        self.out.extend_from_slice(&[0, 0, 0, 0, command]);
    }

    fn ask(&mut self, command: u8, text: &[u8]) -> Answer<()> {
        self.begin(command);
        self.out.extend_from_slice(text);
        self.send()?;
        self.receive()
    }

    /// Sends what `out` has behind the four bytes of the packet's head.
    fn send(&mut self) -> Answer<()> {
        let length = self.out.len() - 4;
        if length >= LONGEST {
            return Err(Fault::Lost(format!("a statement of {length} bytes is too long for one packet")));
        }
        let head = u32::try_from(length).unwrap_or(0) | (u32::from(self.sequence) << 24);
        self.out[..4].copy_from_slice(&head.to_le_bytes());
        self.sequence = self.sequence.wrapping_add(1);
        Ok(self.stream.get_mut().write_all(&self.out)?)
    }

    /// Reads the next message into `packet`.
    fn receive(&mut self) -> Answer<()> {
        self.packet.clear();
        loop {
            let mut head = [0; 4];
            self.stream.read_exact(&mut head)?;
            let [a, b, c, sequence] = head;
            self.sequence = sequence.wrapping_add(1);
            let length = usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16;
            let from = self.packet.len();
            if from + length > MOST {
                return Err(malformed("length"));
            }
            self.packet.resize(from + length, 0);
            self.stream.read_exact(&mut self.packet[from..])?;
            if length < LONGEST {
                return Ok(());
            }
        }
    }
}

/// Says goodbye: the server's log would list a connection that breaks.
impl Drop for Connection {
    fn drop(&mut self) {
        self.begin(QUIT);
        // A connection that broke before needs no goodbye.
        let _ = self.send();
    }
}

fn malformed(what: &str) -> Fault {
    Fault::Lost(format!("malformed {what}"))
}

/// The server's message.
fn refusal(packet: &[u8]) -> Fault {
    let code =
        packet.get(1..3).and_then(|code| code.first_chunk()).map_or(0, |code| u16::from_le_bytes(*code));
    let text = packet.get(3..).unwrap_or_default();
    // The state of the SQL standard, which begins with `#`, says less than the number.
    let text = if text.first() == Some(&b'#') { text.get(6..).unwrap_or_default() } else { text };
    Fault::Refused { code, text: String::from_utf8_lossy(text).into_owned() }
}

/// Appends a number in the protocol's form of lengths.
fn put_length(into: &mut Vec<u8>, length: usize) {
    let bytes = (length as u64).to_le_bytes();
    match length {
        ..=0xfa => into.push(bytes[0]),
        0xfb..0x1_0000 => into.extend_from_slice(&[0xfc, bytes[0], bytes[1]]),
        0x1_0000..0x100_0000 => into.extend_from_slice(&[0xfd, bytes[0], bytes[1], bytes[2]]),
        _ => {
            into.push(0xfe);
            into.extend_from_slice(&bytes);
        }
    }
}

/// The type in the description of a column.
fn column_type(packet: &[u8]) -> Option<u8> {
    let mut parts = Parts(packet);
    for _ in 0..6 {
        let length = usize::try_from(parts.length()?).ok()?;
        parts.take(length)?;
    }
    // The length of the rest, the character set, the greatest length.
    parts.take(1 + 2 + 4)?;
    parts.u8()
}

/// Splits a row in the binary form into its fields.
fn split(packet: &[u8], types: &[u8], fields: &mut Vec<Field>) -> Option<()> {
    fields.clear();
    let mut parts = Parts(packet);
    parts.take(1)?;
    let nulls = parts.take((types.len() + 2).div_ceil(8))?;
    for (at, column) in types.iter().enumerate() {
        // The first two bits of the map are of no column.
        let bit = at + 2;
        if nulls.get(bit / 8)? & (1 << (bit % 8)) != 0 {
            fields.push(Field::Null);
            continue;
        }
        fields.push(match *column {
            TINY => Field::Number(parts.u8()?.into()),
            SHORT => Field::Number(parts.u16()?.into()),
            LONG | INT24 => Field::Number(parts.u32()?.into()),
            LONG_LONG => Field::Number(parts.u64()?),
            text if TEXTS.contains(&text) => {
                let length = usize::try_from(parts.length()?).ok()?;
                let from = packet.len() - parts.0.len();
                parts.take(length)?;
                Field::Bytes(from..from + length)
            }
            _ => return None,
        });
    }
    Some(())
}

/// What is left of a packet.
struct Parts<'a>(&'a [u8]);

impl<'a> Parts<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.first_chunk().copied()
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A number in the protocol's form of lengths.
    fn length(&mut self) -> Option<u64> {
        match self.u8()? {
            short @ ..=0xfa => Some(short.into()),
            0xfc => self.u16().map(u64::from),
            0xfd => self.array().map(|[a, b, c]| u32::from_le_bytes([a, b, c, 0]).into()),
            0xfe => self.u64(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_come_back() {
        for length in [0, 250, 251, 65_535, 65_536, 0xff_ffff, 0x100_0000, 1 << 40] {
            let mut bytes = Vec::new();
            put_length(&mut bytes, length);
            let mut parts = Parts(&bytes);
            assert_eq!((parts.length(), parts.0.len()), (Some(length as u64), 0));
            bytes.pop();
            assert_eq!(Parts(&bytes).length(), None, "{length}");
        }
    }

    #[test]
    fn a_row_is_split_and_a_short_one_is_refused() {
        let types = [LONG_LONG, VAR_STRING, TINY, LONG];
        // The third column is NULL: bit 4.
        let row = [&[0, 0b1_0000][..], &7_u64.to_le_bytes(), &[2], b"ab", &9_u32.to_le_bytes()].concat();
        let mut fields = Vec::new();
        split(&row, &types, &mut fields).unwrap();
        let whole = Row { packet: &row, fields: &fields };
        assert_eq!((whole.number(0), whole.bytes(1), whole.number(2)), (Some(7), Some(&b"ab"[..]), None));
        assert_eq!((whole.number(3), whole.number(4), whole.bytes(0)), (Some(9), None, None));
        for length in 0..row.len() {
            assert_eq!(split(&row[..length], &types, &mut fields), None, "{length}");
        }
        assert_eq!(split(&row, &[77], &mut fields), None, "an unknown type");
    }

    /// Servers that send something else than the protocol says.
    #[test]
    fn a_malformed_answer_is_a_fault_and_a_refusal_has_the_servers_words() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("s");
        let refusal = b"\x19\0\0\0\xff\x15\x04#28000Access denied!!!";
        for (sent, wanted) in [
            (&b"\x01\0\0\0\x07"[..], "malformed greeting"),
            (b"\x01\0\0\0", "the connection is lost: "),
            (b"", "the connection is lost: "),
            (refusal, "the server refuses: Access denied!!! (1045)"),
        ] {
            let _ = std::fs::remove_file(&socket);
            let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
            let server = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                stream.write_all(sent).unwrap();
            });
            let why = Connection::open(&socket, Duration::from_secs(60)).unwrap_err().to_string();
            assert!(why.contains(wanted), "{why}");
            server.join().unwrap();
        }
        let _ = std::fs::remove_file(&socket);
        let silent = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let why = Connection::open(&socket, Duration::from_millis(10)).unwrap_err().to_string();
        assert_eq!(why, "the connection is lost: no answer in time");
        drop(silent);
        let conflict = |code| Fault::Refused { code, text: String::new() }.is_conflict();
        assert_eq!([1213, 1205, 1062].map(conflict), [true, true, false]);
    }
}
