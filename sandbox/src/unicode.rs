//! Unicode's own rules, by another implementation than that of the adapters, so that a mistake in one is found.

use icu_normalizer::ComposingNormalizer;
use icu_properties::{
    CodePointMapData, CodePointSetData,
    props::{Emoji, GeneralCategory, GeneralCategoryGroup},
};
use icu_segmenter::GraphemeClusterSegmenter;

/// Returns a text in normalization form C (UAX 15).
pub(crate) fn nfc(text: &str) -> String {
    ComposingNormalizer::new_nfc().normalize(text).into_owned()
}

/// Returns the user-perceived characters of a text: its extended grapheme clusters (UAX 29).
pub(crate) fn graphemes(text: &str) -> Vec<&str> {
    let ends: Vec<_> = GraphemeClusterSegmenter::new().segment_str(text).collect();
    ends.windows(2).map(|range| &text[range[0]..range[1]]).collect()
}

/// Returns whether a character is an emoji (UTS 51), which digits and `#` are as well.
pub(crate) fn is_emoji(c: char) -> bool {
    CodePointSetData::new::<Emoji>().contains(c)
}

/// Returns whether a character is a combining mark.
pub(crate) fn is_mark(c: char) -> bool {
    GeneralCategoryGroup::Mark.contains(CodePointMapData::<GeneralCategory>::new().get(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_marks_and_emoji_are_told() {
        assert_eq!(graphemes("e\u{301}👩‍👩‍👧 \r\n"), ["e\u{301}", "👩‍👩‍👧", " ", "\r\n"]);
        assert!(graphemes("").is_empty());
        assert_eq!(nfc("e\u{301}"), "é");
        assert!(is_emoji('🎉') && !is_emoji('a') && is_mark('\u{301}') && !is_mark('e'));
    }
}
