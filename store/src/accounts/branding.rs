//! Branding of the connect pages: how an organization's own users see them.
//!
//! It belongs to the organization, and live keys set it. What a test key sets is a preview, which only the pages of test
//! mode show: a test key changes nothing that people see in live mode.

use crate::people::audit::{self, Action, Actor};
use chrono::{DateTime, Utc};
use domain::{Mode, Owner};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::{PgPool, types::Json};

/// Name, logo, color and texts of the connect pages; `None` for this service's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Branding {
    /// Name of the product that asks for the access.
    pub name: Option<String>,
    /// https URL of the logo.
    pub logo_url: Option<String>,
    /// Color of buttons, `#rrggbb`.
    pub accent_color: Option<String>,
    /// https URL of a page with help.
    pub support_url: Option<String>,
    /// https URL of the imprint.
    pub imprint_url: Option<String>,
    /// Texts of the pages.
    pub pages: Pages,
}

/// Texts of each page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pages {
    /// The page on which a hosted login begins.
    pub begin: Texts,
    /// The page on which accounts are selected.
    pub choice: Texts,
    /// The page of a login that is confirmed elsewhere.
    pub confirm: Texts,
    /// The page after a login that connected accounts.
    pub success: Texts,
    /// The page after a login that failed.
    pub failure: Texts,
    /// The page of a login or a selection that took too long.
    pub expired: Texts,
}

/// Texts of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Texts {
    /// Heading.
    pub heading: Option<String>,
    /// Text below the heading.
    pub description: Option<String>,
    /// Words on the button, of a page that has one.
    pub button: Option<String>,
}

/// Returns the branding of an owner's pages: of test mode a preview, if there is one. Without any it is the default.
pub async fn get(db: &PgPool, owner: Owner) -> sqlx::Result<Branding> {
    let row = sqlx::query!(
        r#"select name, logo_url, accent_color, support_url, imprint_url, pages as "pages!: Json<Pages>" from (
             select true as is_preview, name, logo_url, accent_color, support_url, imprint_url, pages
             from connect_branding_previews where org_id = $1 and $2 = 'test'
             union all
             select false, name, logo_url, accent_color, support_url, imprint_url, pages
             from connect_branding where org_id = $1
           ) found order by is_preview desc limit 1"#,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(db)
    .await?;
    let branding = row.map(|row| Branding {
        name: row.name,
        logo_url: row.logo_url,
        accent_color: row.accent_color,
        support_url: row.support_url,
        imprint_url: row.imprint_url,
        pages: row.pages.0,
    });
    Ok(branding.unwrap_or_default())
}

/// Replaces the branding: in live mode that of all pages, which ends a preview; in test mode the preview.
pub async fn set(
    db: &PgPool,
    owner: Owner,
    branding: &Branding,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let mut tx = crate::begin(db).await?;
    let change = |is_preview| audit::Change {
        action: Action::BrandingSet,
        object: owner.org.0,
        details: json!({ "is_preview": is_preview }),
    };
    match owner.mode {
        Mode::Live => {
            sqlx::query!(
                "with preview as (delete from connect_branding_previews where org_id = $1)
                 insert into connect_branding
                   (org_id, name, logo_url, accent_color, support_url, imprint_url, pages, updated_at)
                 values ($1, $2, $3, $4, $5, $6, $7, $8)
                 on conflict (org_id) do update set name = excluded.name, logo_url = excluded.logo_url,
                   accent_color = excluded.accent_color, support_url = excluded.support_url,
                   imprint_url = excluded.imprint_url, pages = excluded.pages, updated_at = excluded.updated_at",
                owner.org.0,
                branding.name,
                branding.logo_url,
                branding.accent_color,
                branding.support_url,
                branding.imprint_url,
                Json(&branding.pages) as _,
                now
            )
            .execute(&mut *tx)
            .await?;
            audit::record_shared(&mut tx, owner.org, by, now, change(false)).await?;
        }
        Mode::Test => {
            sqlx::query!(
                "insert into connect_branding_previews
                   (org_id, name, logo_url, accent_color, support_url, imprint_url, pages, updated_at)
                 values ($1, $2, $3, $4, $5, $6, $7, $8)
                 on conflict (org_id) do update set name = excluded.name, logo_url = excluded.logo_url,
                   accent_color = excluded.accent_color, support_url = excluded.support_url,
                   imprint_url = excluded.imprint_url, pages = excluded.pages, updated_at = excluded.updated_at",
                owner.org.0,
                branding.name,
                branding.logo_url,
                branding.accent_color,
                branding.support_url,
                branding.imprint_url,
                Json(&branding.pages) as _,
                now
            )
            .execute(&mut *tx)
            .await?;
            audit::record(&mut tx, owner, by, now, change(true)).await?;
        }
    }
    tx.commit().await
}
