//! The whole story of a post, for operators: every row that tells of it, as JSON.
//!
//! Without secrets: grants, signing secrets and checkpoints, which may hold upload addresses, are left out, and of
//! endpoints' URLs, which may contain a token, only the host is shown.

use serde_json::Value;
use sqlx::PgPool;
use uuid::Uuid;

/// The story of a post.
#[derive(Clone, Debug)]
pub struct Story {
    /// The rows.
    pub rows: Value,
    /// Ids of the workflows that work on the post.
    pub workflows: Vec<String>,
}

/// Returns the story of a post, given by its id or that of one of its targets.
pub async fn story(db: &PgPool, id: Uuid) -> sqlx::Result<Option<Story>> {
    let row = sqlx::query!(
        r#"with post as (
             select * from posts where id = coalesce((select post_id from targets where id = $1), $1)),
           event as (select e.* from events e join post p on e.post_id = p.id)
           select jsonb_build_object(
             'post', to_jsonb(p),
             'containers', (select coalesce(jsonb_agg(to_jsonb(c) - 'variant' order by c.position), '[]')
               from containers c where c.post_id = p.id and c.variant = 0),
             'variants', (select coalesce(jsonb_agg(to_jsonb(c) order by c.variant, c.position), '[]')
               from containers c where c.post_id = p.id and c.variant > 0),
             'targets', (select coalesce(jsonb_agg(to_jsonb(t) || jsonb_build_object(
                 'account', (select jsonb_build_object('id', a.id, 'platform', a.platform, 'username', a.username,
                     'network_unique_id', a.network_unique_id, 'account_type', a.account_type, 'status', a.status,
                     'scopes', a.scopes, 'tenant_id', a.tenant_id, 'profile_id', a.profile_id,
                     'token_expires_at', a.token_expires_at, 'grant_version', a.grant_version,
                     'rests_until', a.rests_until, 'last_error_code', a.last_error_code, 'updated_at', a.updated_at)
                   from accounts a where a.id = t.account_id),
                 'publications', (select coalesce(jsonb_agg(
                     to_jsonb(u) - 'checkpoint' || jsonb_build_object('has_checkpoint', u.checkpoint <> 'null')
                     order by u.position), '[]') from publications u where u.target_id = t.id),
                 'frozen_by', (select to_jsonb(f) from freezes f where f.id = t.freeze_id))
               order by t.id), '[]') from targets t where t.post_id = p.id),
             'timeline', (select coalesce(jsonb_agg(to_jsonb(l) - 'org_id' - 'mode' - 'post_id' order by l.id), '[]')
               from timeline l where l.post_id = p.id),
             'events', (select coalesce(jsonb_agg(
                 to_jsonb(e) - 'body' || jsonb_build_object('body', e.body::jsonb) order by e.created_at, e.id), '[]')
               from event e),
             'deliveries', (select coalesce(jsonb_agg(to_jsonb(d) || jsonb_build_object('host',
                 (select substring(w.url from '^[^:]+://(?:[^/?#\\]*@)?([^/?#\\]+)') from webhooks w
                  where w.id = d.webhook_id)) order by d.created_at, d.id), '[]')
               from deliveries d join event e on e.id = d.event_id),
             'outbox', (select coalesce(jsonb_agg(to_jsonb(o) order by o.id), '[]') from outbox o
               where o.org_id = p.org_id and o.message->>'post' = p.id::text),
             'audit', (select coalesce(jsonb_agg(to_jsonb(x) order by x.at, x.id), '[]') from audit_entries x
               where x.org_id = p.org_id and x.object_id in (select id from targets where post_id = p.id))
           ) as "rows!",
           array['post-' || p.id] || array(select 'target-' || id from targets where post_id = p.id order by id)
             || array(select distinct 'endpoint-' || d.webhook_id from deliveries d join event e on e.id = d.event_id order by 1)
               as "workflows!"
           from post p"#,
        id
    )
    .fetch_optional(db)
    .await?;
    Ok(row.map(|row| Story { rows: row.rows, workflows: row.workflows }))
}
