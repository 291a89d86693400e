//! Where the sandbox keeps what it accepted: typed records in memory, and a log of every change.
//!
//! One line of JSON per turn goes to the file before the reply goes out, so a process that is killed
//! at any moment forgets nothing that it answered for. Opening replays the log and writes it anew
//! without what was overwritten; a last line that was cut short belongs to a turn nobody heard of.
//! One write to the page cache is enough for that: this survives a dead process, not a power cut.

use anyhow::{Context, Result, bail};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::{
    collections::{BTreeMap, HashMap},
    fs::{File, OpenOptions},
    io::{BufRead, BufReader, BufWriter, Write},
    path::Path,
};

/// Something the shelf keeps, and where it stands.
pub(crate) trait Record: Serialize + DeserializeOwned {
    /// Which kind it is; changing it orphans what was kept.
    const SHELF: &'static str;

    /// Its place among its kind. Keys sort as text.
    fn key(&self) -> String;
}

/// One change: kind, key, and the record, or null where it was taken away.
type Change = (String, String, Value);

/// All records.
pub(crate) struct Shelf {
    records: HashMap<String, BTreeMap<String, Value>>,
    unwritten: Vec<Change>,
    log: Option<Log>,
}

struct Log {
    file: File,
    length: u64,
}

impl Shelf {
    /// A shelf in memory, or the one whose log stands at `path`.
    ///
    /// # Errors
    ///
    /// When the log can't be read, rewritten, or is broken elsewhere than at its end.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self> {
        let mut shelf = Self { records: HashMap::new(), unwritten: Vec::new(), log: None };
        if let Some(path) = path {
            if path.exists() {
                shelf.replay(path).with_context(|| format!("reading {}", path.display()))?;
            }
            shelf.log = Some(shelf.compact(path).with_context(|| format!("rewriting {}", path.display()))?);
        }
        Ok(shelf)
    }

    /// The record with this key.
    pub(crate) fn get<T: Record>(&self, key: &str) -> Option<T> {
        self.records.get(T::SHELF)?.get(key).map(read)
    }

    /// Adds or replaces a record.
    pub(crate) fn put<T: Record>(&mut self, record: &T) {
        let value = serde_json::to_value(record).expect("a record is plain data");
        self.change((T::SHELF.to_owned(), record.key(), value));
    }

    /// Takes a record away.
    pub(crate) fn remove<T: Record>(&mut self, key: &str) {
        self.change((T::SHELF.to_owned(), key.to_owned(), Value::Null));
    }

    /// The records whose key begins with `prefix`, in the order of their keys.
    pub(crate) fn under<'a, T: Record>(
        &'a self,
        prefix: &str,
    ) -> impl DoubleEndedIterator<Item = T> + use<'a, T> {
        let (start, end) = (prefix.to_owned(), format!("{prefix}\u{10ffff}"));
        self.records
            .get(T::SHELF)
            .into_iter()
            .flat_map(move |kind| kind.range(start.clone()..end.clone()))
            .map(|(_, value)| read(value))
    }

    /// The records from this key on.
    pub(crate) fn since<'a, T: Record>(&'a self, start: &str) -> impl Iterator<Item = T> + use<'a, T> {
        let start = start.to_owned();
        self.records
            .get(T::SHELF)
            .into_iter()
            .flat_map(move |kind| kind.range(start.clone()..))
            .map(|(_, value)| read(value))
    }

    /// Writes the turn's changes to the log.
    ///
    /// # Errors
    ///
    /// When they can't be written; nothing of them is then in the log.
    pub(crate) fn commit(&mut self) -> Result<()> {
        let changes = std::mem::take(&mut self.unwritten);
        let Some(log) = self.log.as_mut().filter(|_| !changes.is_empty()) else { return Ok(()) };
        let mut line = serde_json::to_vec(&changes).context("a change is plain data")?;
        line.push(b'\n');
        if let Err(error) = log.file.write_all(&line) {
            // Half a line in the middle would make all that follows unreadable.
            log.file.set_len(log.length).context("cutting off a line that could not be written")?;
            return Err(error).context("writing to the sandbox's log");
        }
        log.length += line.len() as u64;
        Ok(())
    }

    fn change(&mut self, change: Change) {
        if self.log.is_some() {
            self.unwritten.push(change.clone());
        }
        self.apply(change);
    }

    fn apply(&mut self, (kind, key, value): Change) {
        let kind = self.records.entry(kind).or_default();
        if value.is_null() {
            kind.remove(&key);
        } else {
            kind.insert(key, value);
        }
    }

    fn replay(&mut self, path: &Path) -> Result<()> {
        let mut lines = BufReader::new(File::open(path)?);
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            if lines.read_until(b'\n', &mut line)? == 0 || line.last() != Some(&b'\n') {
                break;
            }
            match serde_json::from_slice::<Vec<Change>>(&line) {
                Ok(changes) => changes.into_iter().for_each(|change| self.apply(change)),
                Err(_) if lines.fill_buf()?.is_empty() => break,
                Err(error) => bail!("line {number}: {error}"),
            }
        }
        Ok(())
    }

    fn compact(&self, path: &Path) -> Result<Log> {
        let fresh = path.with_extension("new");
        let mut out = BufWriter::new(File::create(&fresh)?);
        for (kind, records) in &self.records {
            for (key, value) in records {
                serde_json::to_writer(&mut out, &[(kind, key, value)])?;
                out.write_all(b"\n")?;
            }
        }
        out.into_inner().map_err(|error| error.into_error())?.sync_all()?;
        std::fs::rename(&fresh, path)?;
        let file = OpenOptions::new().append(true).open(path)?;
        let length = file.metadata()?.len();
        Ok(Log { file, length })
    }
}

fn read<T: Record>(value: &Value) -> T {
    T::deserialize(value).expect("what stands on a shelf was put there as its kind")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Note {
        id: String,
        text: String,
    }

    impl Record for Note {
        const SHELF: &'static str = "note";
        fn key(&self) -> String {
            self.id.clone()
        }
    }

    fn note(id: &str, text: &str) -> Note {
        Note { id: id.into(), text: text.into() }
    }

    fn path() -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("fanfare-shelf-{}", uuid::Uuid::now_v7()));
        std::fs::create_dir_all(&folder).unwrap();
        folder.join("log.jsonl")
    }

    #[test]
    fn what_was_committed_is_there_again() {
        let path = path();
        let mut shelf = Shelf::open(Some(&path)).unwrap();
        shelf.put(&note("a/1", "one"));
        shelf.put(&note("a/2", "two"));
        shelf.put(&note("b/1", "other"));
        shelf.commit().unwrap();
        shelf.remove::<Note>("a/1");
        shelf.put(&note("a/2", "twice"));
        shelf.commit().unwrap();
        shelf.put(&note("a/3", "never committed"));
        drop(shelf);

        let shelf = Shelf::open(Some(&path)).unwrap();
        assert_eq!(shelf.under::<Note>("a/").collect::<Vec<_>>(), [note("a/2", "twice")]);
        assert_eq!(shelf.get("b/1"), Some(note("b/1", "other")));
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 2, "compacted");
    }

    #[test]
    fn a_torn_last_line_is_dropped_and_a_broken_middle_is_refused() {
        let path = path();
        let mut shelf = Shelf::open(Some(&path)).unwrap();
        shelf.put(&note("1", "kept"));
        shelf.commit().unwrap();
        drop(shelf);
        let whole = std::fs::read_to_string(&path).unwrap();

        for torn in ["[[\"note\",\"2\",{\"id\"", "[[\"note\",\"2\"\n"] {
            std::fs::write(&path, format!("{whole}{torn}")).unwrap();
            let shelf = Shelf::open(Some(&path)).unwrap();
            assert_eq!(shelf.under::<Note>("").count(), 1, "{torn}");
        }
        std::fs::write(&path, format!("nonsense\n{whole}")).unwrap();
        assert!(Shelf::open(Some(&path)).is_err());
    }
}
