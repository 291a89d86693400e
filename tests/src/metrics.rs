//! The text format of Prometheus, <https://prometheus.io/docs/instrumenting/exposition_formats/>.

use std::collections::{BTreeMap, BTreeSet};

/// The metrics of a process.
#[derive(Debug)]
pub struct Samples {
    /// The text.
    pub text: String,
    /// Families with help and a type.
    pub described: BTreeSet<String>,
    samples: Vec<(String, BTreeMap<String, String>, f64)>,
}

impl Samples {
    /// Parses the text.
    pub(crate) fn parse(text: &str) -> Self {
        let named = |kind: &str| -> BTreeSet<String> {
            let lines = text.lines().filter_map(|line| line.strip_prefix(kind));
            lines.filter_map(|line| line.split(' ').next().map(str::to_owned)).collect()
        };
        let described = named("# HELP ").intersection(&named("# TYPE ")).cloned().collect();
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        Self { text: text.to_owned(), described, samples: lines.map(sample).collect() }
    }

    /// Returns the names and the labels of all samples.
    pub fn names(&self) -> impl Iterator<Item = (&str, &BTreeMap<String, String>)> {
        self.samples.iter().map(|(name, labels, _)| (name.as_str(), labels))
    }

    /// Returns the sum of the samples with a name and all of these labels; `None` without any.
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let is_one = |(found, all, _): &&(String, BTreeMap<String, String>, f64)| {
            found == name
                && labels.iter().all(|(label, value)| all.get(*label).is_some_and(|found| found == value))
        };
        let mut found = self.samples.iter().filter(is_one).peekable();
        found.peek()?;
        Some(found.map(|(.., value)| value).sum())
    }
}

fn sample(line: &str) -> (String, BTreeMap<String, String>, f64) {
    let (series, value) = line.rsplit_once(' ').expect("a value");
    let value = value.parse().expect("a number");
    let Some((name, labels)) = series.split_once('{') else {
        return (series.to_owned(), BTreeMap::new(), value);
    };
    let labels = labels.strip_suffix("\"}").expect("quoted labels").split("\",");
    let pair = |label: &str| {
        let (name, value) = label.split_once("=\"").expect("a quoted value");
        (name.to_owned(), value.to_owned())
    };
    (name.to_owned(), labels.map(pair).collect(), value)
}
