//! Versions of what is started beside Fanfare, named once.
//!
//! The compose file, the manifests and the documents repeat them; a test compares.

/// Temporal's CLI, which has the development server.
pub const TEMPORAL_CLI: &str = "1.5.1";
/// SHA-256 of the archives of that release, by system and architecture, as its `checksums.txt` has them.
pub const TEMPORAL_CLI_SHA256: [(&str, &str, &str); 4] = [
    ("linux", "amd64", "ddc95e08b0b076efd4ea9733a3f488eb7d2be875f8834e616cd2a37358b4852d"),
    ("linux", "arm64", "bd1b0db9f18b051026de8bf6cc1505f2510f14bbb7a8b9a4a91fff46c77454f5"),
    ("darwin", "amd64", "bbb73e2a31135abe50a1f1cdb35030c42961df618e8ce9c60ae89f201540c5d9"),
    ("darwin", "arm64", "cca01b7ea35ad56e2a328d9ae596bf716bd22313ef63c7a761c88354457c2415"),
];
/// Temporal's server: the one in that CLI, so that what the tests run on is what production runs.
pub const TEMPORAL_SERVER: &str = "1.29.1";
/// Newest version of the server that the tests ran with.
pub const NEWEST_TEMPORAL_SERVER: &str = "1.32.2";
/// Temporal's UI in that CLI.
pub const TEMPORAL_UI: &str = "2.42.1";
