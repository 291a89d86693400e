-- Whether metadata are removed from pictures and videos before they are published.
alter table organizations add column strip_metadata boolean not null default true;
