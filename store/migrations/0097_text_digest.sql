-- Whether a text says the same as another one: letter case and white space aside. Not Unicode composition: normalize()
-- takes seconds for some texts of 100 kB.
create function text_digest(content text) returns text language sql immutable strict parallel safe as $$
  select md5(lower(btrim(regexp_replace(content, '\s+', ' ', 'g'))))
$$;
-- Finds posts with the same text. An index instead of a column, because it needs nothing of the processes that write
-- texts.
create index containers_text on containers (org_id, mode, text_digest(content)) where position = 0;
create index variant_containers_text on variant_containers (org_id, mode, text_digest(content)) where position = 0;
