-- True for a publication whose row came from a backup: its checkpoint may lack steps taken since then.
alter table publications add column is_restored boolean not null default false;
