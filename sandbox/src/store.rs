//! The store: typed records in memory, and a log of every change.
//!
//! One line of JSON per transaction is written before the response is sent, so that a killed process loses
//! nothing that it responded to. Opening replays the log and rewrites it without overwritten records; a last
//! line that was cut short belongs to a transaction without a response. The page cache is enough for that:
//! the data survive a killed process, not a power cut.

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::{
    collections::{BTreeMap, HashMap},
    fs::{File, OpenOptions},
    io::{BufRead, BufReader, BufWriter, Write},
    path::Path,
};

/// A record of the store.
pub(crate) trait Record: Serialize + DeserializeOwned {
    /// Name of the table; changing it orphans stored records.
    const TABLE: &'static str;

    /// Returns its key. Keys sort as text.
    fn key(&self) -> String;
}

/// A counter, such as the last id that was given.
#[derive(Serialize, Deserialize)]
struct Counter {
    name: String,
    value: u64,
}

impl Record for Counter {
    const TABLE: &'static str = "counter";

    fn key(&self) -> String {
        self.name.clone()
    }
}

/// An entry of an index: the key of a record that belongs to an author, a parent or the like.
#[derive(Serialize, Deserialize)]
struct Link {
    index: String,
    of: String,
    position: u64,
    key: String,
}

impl Link {
    fn prefix(index: &str, of: &str) -> String {
        // No id has a line break.
        format!("{index}\n{of}\n")
    }
}

impl Record for Link {
    const TABLE: &'static str = "link";

    fn key(&self) -> String {
        format!("{}{:020}", Self::prefix(&self.index, &self.of), self.position)
    }
}

/// One change: table, key, and the record, or null when it was removed.
type Change = (String, String, Value);

pub(crate) struct Store {
    records: HashMap<String, BTreeMap<String, Value>>,
    unwritten: Vec<Change>,
    log: Option<Log>,
}

struct Log {
    file: File,
    length: u64,
}

impl Store {
    /// Opens a store in memory, or the store whose log is at `path`.
    ///
    /// # Errors
    ///
    /// When the log can't be read or rewritten, or is broken before its end.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self> {
        let mut store = Self { records: HashMap::new(), unwritten: Vec::new(), log: None };
        if let Some(path) = path {
            if path.exists() {
                store.replay(path).with_context(|| format!("reading {}", path.display()))?;
            }
            store.log = Some(store.compact(path).with_context(|| format!("rewriting {}", path.display()))?);
        }
        Ok(store)
    }

    pub(crate) fn get<T: Record>(&self, key: &str) -> Option<T> {
        self.records.get(T::TABLE)?.get(key).map(read)
    }

    /// Adds or replaces a record.
    pub(crate) fn put<T: Record>(&mut self, record: &T) {
        let value = serde_json::to_value(record).expect("a record is plain data");
        self.change((T::TABLE.to_owned(), record.key(), value));
    }

    /// Removes a record.
    pub(crate) fn remove<T: Record>(&mut self, key: &str) {
        self.change((T::TABLE.to_owned(), key.to_owned(), Value::Null));
    }

    /// Returns the records whose key begins with `prefix`, in the order of their keys.
    pub(crate) fn with_prefix<'a, T: Record>(
        &'a self,
        prefix: &str,
    ) -> impl DoubleEndedIterator<Item = T> + use<'a, T> {
        let (start, end) = (prefix.to_owned(), format!("{prefix}\u{10ffff}"));
        self.records
            .get(T::TABLE)
            .into_iter()
            .flat_map(move |kind| kind.range(start.clone()..end.clone()))
            .map(|(_, value)| read(value))
    }

    /// Returns the records from this key on.
    pub(crate) fn starting_at<'a, T: Record>(&'a self, start: &str) -> impl Iterator<Item = T> + use<'a, T> {
        let start = start.to_owned();
        self.records
            .get(T::TABLE)
            .into_iter()
            .flat_map(move |kind| kind.range(start.clone()..))
            .map(|(_, value)| read(value))
    }

    /// Sets a counter, which begins at 0, to the number that follows its last one, and returns that.
    pub(crate) fn advance(&mut self, counter: &str, next: impl FnOnce(u64) -> u64) -> u64 {
        let value = next(self.get::<Counter>(counter).map_or(0, |counter| counter.value));
        self.put(&Counter { name: counter.to_owned(), value });
        value
    }

    /// Adds a record's key to those that an index lists for `of`.
    pub(crate) fn link(&mut self, index: &str, of: &str, key: &str) {
        let last = self.with_prefix::<Link>(&Link::prefix(index, of)).next_back();
        let position = last.map_or(0, |last| last.position + 1);
        self.put(&Link { index: index.into(), of: of.into(), position, key: key.into() });
    }

    /// Removes a record's key from those that an index lists for `of`.
    pub(crate) fn unlink(&mut self, index: &str, of: &str, key: &str) {
        let found = self.with_prefix::<Link>(&Link::prefix(index, of)).find(|link| link.key == key);
        if let Some(link) = found {
            self.remove::<Link>(&Record::key(&link));
        }
    }

    /// Returns the keys that an index lists for `of`, in the order in which they were added.
    pub(crate) fn linked_keys<'a>(
        &'a self,
        index: &str,
        of: &str,
    ) -> impl DoubleEndedIterator<Item = String> + use<'a> {
        self.with_prefix::<Link>(&Link::prefix(index, of)).map(|link| link.key)
    }

    /// Returns the records that an index lists for `of` and that still exist, in the order in which they were
    /// added.
    pub(crate) fn linked<'a, T: Record>(
        &'a self,
        index: &str,
        of: &str,
    ) -> impl DoubleEndedIterator<Item = T> + use<'a, T> {
        self.linked_keys(index, of).filter_map(|key| self.get(&key))
    }

    /// Writes the transaction's changes to the log.
    ///
    /// # Errors
    ///
    /// When they can't be written; the log then has none of them.
    pub(crate) fn commit(&mut self) -> Result<()> {
        let changes = std::mem::take(&mut self.unwritten);
        let Some(log) = self.log.as_mut().filter(|_| !changes.is_empty()) else { return Ok(()) };
        let mut line = serde_json::to_vec(&changes).context("a change is plain data")?;
        line.push(b'\n');
        if let Err(error) = log.file.write_all(&line) {
            // A partial line would make all that follows unreadable.
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
    T::deserialize(value).expect("a stored record has the type of its table")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Note {
        id: String,
        text: String,
    }

    impl Record for Note {
        const TABLE: &'static str = "note";
        fn key(&self) -> String {
            self.id.clone()
        }
    }

    fn note(id: &str, text: &str) -> Note {
        Note { id: id.into(), text: text.into() }
    }

    fn path() -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("fanfare-store-{}", uuid::Uuid::now_v7()));
        std::fs::create_dir_all(&folder).unwrap();
        folder.join("log.jsonl")
    }

    #[test]
    fn committed_records_are_restored() {
        let path = path();
        let mut store = Store::open(Some(&path)).unwrap();
        store.put(&note("a/1", "one"));
        store.put(&note("a/2", "two"));
        store.put(&note("b/1", "other"));
        store.commit().unwrap();
        store.remove::<Note>("a/1");
        store.put(&note("a/2", "twice"));
        store.commit().unwrap();
        store.put(&note("a/3", "never committed"));
        drop(store);

        let store = Store::open(Some(&path)).unwrap();
        assert_eq!(store.with_prefix::<Note>("a/").collect::<Vec<_>>(), [note("a/2", "twice")]);
        assert_eq!(store.get("b/1"), Some(note("b/1", "other")));
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 2, "compacted");
    }

    #[test]
    fn an_index_lists_what_exists_in_order() {
        let mut store = Store::open(None).unwrap();
        for id in ["b", "a", "c"] {
            store.put(&note(id, ""));
            store.link("by", "ada", id);
        }
        store.link("by", "ada 2", "b");
        store.unlink("by", "ada", "a");
        store.remove::<Note>("c");
        store.put(&note("0", ""));
        store.link("by", "ada", "0");
        let listed: Vec<_> = store.linked::<Note>("by", "ada").map(|note| note.id).collect();
        assert_eq!(listed, ["b", "0"]);
        assert_eq!(store.linked_keys("by", "ada").count(), 3);
        assert_eq!((store.advance("n", |last| last + 2), store.advance("n", |last| last + 2)), (2, 4));
    }

    #[test]
    fn a_torn_last_line_is_dropped_and_a_broken_middle_is_refused() {
        let path = path();
        let mut store = Store::open(Some(&path)).unwrap();
        store.put(&note("1", "kept"));
        store.commit().unwrap();
        drop(store);
        let whole = std::fs::read_to_string(&path).unwrap();

        for torn in ["[[\"note\",\"2\",{\"id\"", "[[\"note\",\"2\"\n"] {
            std::fs::write(&path, format!("{whole}{torn}")).unwrap();
            let store = Store::open(Some(&path)).unwrap();
            assert_eq!(store.with_prefix::<Note>("").count(), 1, "{torn}");
        }
        std::fs::write(&path, format!("nonsense\n{whole}")).unwrap();
        assert!(Store::open(Some(&path)).is_err());
    }
}
