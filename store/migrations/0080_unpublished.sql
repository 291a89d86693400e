-- When a live target's post was deleted from its platform; its status stays `published`.
alter table targets add column unpublished_at timestamptz;
