//! Faults of a machine: a full disk and a wrong clock.

use crate::parts::Part;
use std::{
    fs::{self, File, Permissions},
    io::{ErrorKind, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

/// Size of a volume in bytes: several times what a scenario stores.
const VOLUME_BYTES: u64 = 384 << 20;
/// Name of the file that fills a volume.
const BALLAST: &str = "ballast";

/// A file system of limited size, unmounted on drop.
pub(crate) struct Volume {
    /// Mount point.
    pub(crate) dir: PathBuf,
}

impl Volume {
    /// Returns the reason why this process can't mount a volume.
    pub(crate) fn obstacle(dir: &Path) -> Option<String> {
        fs::create_dir_all(dir).unwrap();
        Self::try_mount(dir).err()
    }

    /// Mounts an empty volume.
    pub(crate) fn mount(dir: &Path) -> Self {
        fs::create_dir_all(dir).unwrap();
        Self::try_mount(dir).expect("a volume")
    }

    fn try_mount(dir: &Path) -> Result<Self, String> {
        let size = format!("size={VOLUME_BYTES}");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(dir).output();
        let mounted = mounted.map_err(|error| format!("mount: {error}"))?;
        if mounted.status.success() {
            Ok(Self { dir: dir.to_owned() })
        } else {
            Err(String::from_utf8_lossy(&mounted.stderr).trim().to_owned())
        }
    }

    /// Fills what is free.
    pub(crate) fn fill(&self) {
        let mut ballast = File::create(self.dir.join(BALLAST)).unwrap();
        let mut size = 1 << 20;
        while size > 0 {
            match ballast.write(&vec![0; size]) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => size /= 2,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Frees what [`Volume::fill`] took.
    pub(crate) fn free(&self) {
        fs::remove_file(self.dir.join(BALLAST)).unwrap();
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        // Lazily, because a server may not have exited yet.
        let _ = Command::new("umount").arg("--lazy").arg(&self.dir).status();
    }
}

/// Clocks that differ from the machine's, by libfaketime (<https://github.com/wolfcw/libfaketime>).
///
/// Temporal reads the clock without the C library, so that its own can't be set.
pub(crate) struct Clocks {
    library: PathBuf,
    dir: PathBuf,
    /// The `guard` program of the servers, with a clock.
    pub(crate) guard: PathBuf,
}

impl Clocks {
    /// Returns the path of the library, if it is installed.
    pub(crate) fn library() -> Option<PathBuf> {
        let libraries = fs::read_dir("/usr/lib").ok()?.flatten();
        libraries.map(|entry| entry.path().join("faketime/libfaketimeMT.so.1")).find(|path| path.exists())
    }

    /// Creates clocks that show the time.
    pub(crate) fn new(dir: &Path, program: &str) -> Self {
        let library = Self::library().expect("libfaketime is installed");
        let clocks = Self { library, dir: dir.to_owned(), guard: dir.join("guard") };
        for part in Part::ALL {
            clocks.set(part, 0);
        }
        let variables = clocks.environment(Part::Postgres);
        let variables: Vec<_> = variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
        // Only the server gets the library, not `guard`: it shares memory with its children, and they must have
        // one user.
        let script = format!(
            "#!/bin/sh\nfor word in \"$@\"; do\n  shift; set -- \"$@\" \"$word\"\n  \
             if [ \"$word\" = -- ]; then set -- \"$@\" env {}; fi\ndone\nexec {program} \"$@\"\n",
            variables.join(" ")
        );
        fs::write(&clocks.guard, script).unwrap();
        fs::set_permissions(&clocks.guard, Permissions::from_mode(0o755)).unwrap();
        clocks
    }

    /// Sets the clock of a part, as seen by the part within a second.
    pub(crate) fn set(&self, part: Part, hours: i64) {
        let file = self.file(part);
        let new = file.with_extension("new");
        fs::write(&new, format!("{hours:+}h\n")).unwrap();
        fs::rename(new, file).unwrap();
    }

    /// Returns the variables of a process with the clock of a part.
    pub(crate) fn environment(&self, part: Part) -> [(&'static str, String); 4] {
        [
            ("LD_PRELOAD", self.library.display().to_string()),
            ("FAKETIME_TIMESTAMP_FILE", self.file(part).display().to_string()),
            ("FAKETIME_CACHE_DURATION", "1".to_owned()),
            // Durations are measured correctly.
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ]
    }

    fn file(&self, part: Part) -> PathBuf {
        self.dir.join(format!("clock-{}", part.name()))
    }
}
