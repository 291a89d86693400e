-- What a picture or video holds besides its content: see domain::media::Metadata. Null before it was looked for, and for
-- other kinds of media.
alter table media add column metadata text;
