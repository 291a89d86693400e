//! Observation of every change of a status, at the moment when it is committed.
//!
//! Polling would miss most of them. Triggers record each change, and the statuses of a post with all its targets
//! at the end of each transaction; the rules are checked in [`super::model`].

use super::model::{self, Checked, Row};
use sqlx::types::Json;
use store::Pool;
use uuid::Uuid;

/// Tables and triggers of the observation.
const TRIGGERS: &str = "
    create table observed (
      id bigint generated always as identity primary key,
      org_id uuid not null,
      subject text not null,
      -- Null for a roll-up.
      target boolean,
      before text,
      after text not null,
      -- Status of the target's post, and those of the post's targets.
      post text,
      targets text[]
    );
    create index observed_org on observed (org_id, id);

    create function observe_target() returns trigger language plpgsql as $$
    begin
      insert into observed (org_id, subject, target, before, after, post)
      select new.org_id, 'target ' || new.id, true, case when tg_op = 'UPDATE' then old.status end, new.status, p.status
      from posts p where p.id = new.post_id;
      return null;
    end $$;
    create function observe_post() returns trigger language plpgsql as $$
    begin
      insert into observed (org_id, subject, target, before, after)
      values (new.org_id, 'post ' || new.id, false, case when tg_op = 'UPDATE' then old.status end, new.status);
      return null;
    end $$;
    create function observe_roll_up() returns trigger language plpgsql as $$
    begin
      insert into observed (org_id, subject, after, targets)
      select p.org_id, 'post ' || p.id, p.status,
        array(select t.status from targets t where t.post_id = p.id order by t.id)
      from posts p where p.id = case tg_table_name when 'posts' then new.id else (to_jsonb(new) ->> 'post_id')::uuid end;
      return null;
    end $$;

    create trigger observe_new_target after insert on targets for each row execute function observe_target();
    create trigger observe_target after update of status on targets for each row
      when (old.status <> new.status) execute function observe_target();
    create trigger observe_new_post after insert on posts for each row execute function observe_post();
    create trigger observe_post after update of status on posts for each row
      when (old.status <> new.status) execute function observe_post();
    create constraint trigger observe_roll_up_of_target after insert or update of status on targets
      deferrable initially deferred for each row execute function observe_roll_up();
    create constraint trigger observe_roll_up_of_post after insert or update of status on posts
      deferrable initially deferred for each row execute function observe_roll_up();";

/// Begins the observation of a database.
pub(super) async fn install(db: &Pool) {
    tests::sql(db, TRIGGERS).await;
}

/// A recorded change.
#[derive(sqlx::FromRow)]
struct Change {
    id: i64,
    subject: String,
    target: Option<bool>,
    before: Option<String>,
    after: String,
    post: Option<String>,
    targets: Option<Vec<String>>,
}

/// Checks an organization's changes since `last`, and returns the number of the last one and of the changes.
pub(super) async fn check(db: &Pool, org: Uuid, last: i64) -> Result<(i64, usize), String> {
    let changes: Vec<Change> = sqlx::query_as(
        "select id, subject, target, before, after, post, targets from observed
         where org_id = $1 and id > $2 order by id",
    )
    .bind(org)
    .bind(last)
    .fetch_all(db)
    .await
    .unwrap();
    for change in &changes {
        let Change { subject, target, before, after, post, targets, .. } = change;
        let before = before.as_deref();
        let is_right = match target {
            Some(true) => model::target_may_change(before, after, post.as_deref().unwrap_or_default()),
            Some(false) => model::post_may_change(before, after),
            None => model::rolls_up(after, targets.as_deref().unwrap_or_default()),
        };
        if !is_right {
            return Err(match targets {
                Some(targets) => format!("{subject} is {after}, and its targets are {targets:?}"),
                None => format!("{subject} went from {before:?} to {after}, its post being {post:?}"),
            });
        }
    }
    let last = changes.last().map_or(last, |change| change.id);
    Ok((last, changes.iter().filter(|change| change.target.is_some()).count()))
}

/// Returns all posts of an organization, deleted ones included.
pub(super) async fn rows(db: &Pool, org: Uuid) -> Vec<Row> {
    let rows: Json<Vec<Row>> = sqlx::query_scalar(
        "select coalesce(json_agg(json_build_object(
           'id', p.id, 'status', p.status, 'is_deleted', p.deleted_at is not null, 'is_draft', p.is_draft,
           'content', (select content from containers c where c.post_id = p.id and variant = 0 and position = 0),
           'year', extract(year from p.scheduled_at at time zone 'utc'), 'is_slot', p.slot_account_id is not null,
           'targets', (
             select json_agg(json_build_object(
               'id', t.id, 'account_id', t.account_id, 'status', t.status, 'platform_post_id', t.platform_post_id,
               'error_code', t.error_code, 'error_message', t.error_message,
               'is_due', t.status = 'published' and t.next_attempt_at is not null,
               'is_incomplete', jsonb_path_exists(coalesce(t.missing, '[]'), '$[*] ? (!exists(@.is_left_out))'),
               'is_torn', t.status = 'published' and t.error_code is not null and t.next_attempt_at is null
                 and t.unpublished_at is null and t.missing is not null,
               'is_parked', t.status in ('failed', 'published')
                 and coalesce(t.next_attempt_at > now() + interval '3 seconds', false)))
             from targets t where t.post_id = p.id)) order by p.id), '[]')
         from posts p where p.org_id = $1",
    )
    .bind(org)
    .fetch_one(db)
    .await
    .unwrap();
    rows.0
}

/// Checks that rows are those of a model.
pub(super) fn compare(model: &mut model::Model, rows: &[Row]) -> Checked {
    if rows.len() != model.posts.len() {
        return Err(format!("{} posts are stored, {} were created", rows.len(), model.posts.len()));
    }
    rows.iter().try_for_each(|row| model.observe(row))?;
    rows.iter().try_for_each(|row| model.check_reply(row, rows))
}
