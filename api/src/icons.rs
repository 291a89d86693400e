//! Icons of platforms and pages: symbols of one file, of which the connect pages contain those that they show.

/// The file.
const FILE: &str = include_str!("../../look/icons.svg");

/// Returns the content of a symbol with the view box `0 0 24 24`; `None` if there is none of this name.
pub(crate) fn symbol(name: &str) -> Option<&'static str> {
    let (_, rest) = FILE.split_once(&format!("<symbol id=\"{name}\" viewBox=\"0 0 24 24\""))?;
    let (content, _) = rest.split_once("</symbol>")?;
    Some(content.split_once('>')?.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_platform_has_an_icon() {
        for id in platforms::IDS {
            let icon = symbol(id).unwrap_or_else(|| panic!("{id}"));
            assert!(icon.starts_with("<path ") && icon.ends_with("/>"), "{id}: {icon}");
        }
        assert_eq!(symbol("nothing"), None);
    }
}
