//! Metrics of posts: a page's are in two lists, a member's are one call each. Any app that may post reads likes and
//! comments.
//! <https://learn.microsoft.com/en-us/linkedin/marketing/community-management/organizations/share-statistics>

use super::{Elements, LinkedIn, REST, V2, encode, finder, has, is_closed, is_page, social};
use crate::{Analytics, Result, Session};
use async_trait::async_trait;
use domain::{Failure, Metrics};
use serde::Deserialize;

#[async_trait]
impl Analytics for LinkedIn {
    /// A comment has no figures of its own.
    fn covers_replies(&self) -> bool {
        false
    }

    async fn metrics(&self, cx: &Session<'_>, id: &str) -> Result<Metrics> {
        let mut metrics = Metrics::default();
        let closed = match actions(cx, id).await {
            Ok(actions) => {
                metrics.likes = actions.likes.total;
                metrics.comments = actions.comments.all.max(actions.comments.first_level);
                None
            }
            // This app may be able to read the metrics of a member's post but not the post.
            Err(failure) if is_closed(&failure) => Some(failure),
            Err(failure) => return Err(failure),
        };
        let more = if is_page(cx) {
            page_metrics(cx, id, &mut metrics).await
        } else {
            member_metrics(cx, id, &mut metrics).await
        };
        match (more, closed) {
            (Ok(()), _) => Ok(metrics),
            // Metrics that this app may not read keep their value.
            (Err(failure), None) if is_closed(&failure) => Ok(metrics),
            (Err(failure), Some(closed)) if is_closed(&failure) => Err(closed),
            (Err(failure), _) => Err(failure),
        }
    }
}

/// Returns the numbers of likes and comments. Apps of self-service get 403 from the versioned API, and read those of a
/// member's post from the unversioned one with `w_member_social`: <https://github.com/trypostit/trypost/pull/364>.
async fn actions(cx: &Session<'_>, id: &str) -> Result<Actions> {
    let read = async |api: &str| {
        social(cx, api, cx.get(format!("{api}/socialActions/{}", encode(id)))).send::<Actions>().await
    };
    match read(REST).await {
        Err(failure) if is_closed(&failure) && !is_page(cx) => read(V2).await,
        actions => actions,
    }
}

async fn page_metrics(cx: &Session<'_>, id: &str, metrics: &mut Metrics) -> Result<()> {
    let page = encode(&format!("urn:li:organization:{}", cx.account.network_unique_id));
    let list = if id.contains(":ugcPost:") { "ugcPosts" } else { "shares" };
    let address = format!(
        "{REST}/organizationalEntityShareStatistics?q=organizationalEntity&organizationalEntity={page}&{list}=List({})",
        encode(id)
    );
    let answer: Elements<Statistics> = finder(cx, cx.get(address)).send().await?;
    // The list omits a post without views.
    if let Some(Statistics { total }) = answer.elements.into_iter().next() {
        let count = |figure: i64| u64::try_from(figure).unwrap_or(0);
        *metrics = Metrics {
            impressions: count(total.impression_count),
            reach: count(total.unique_impressions_count),
            likes: count(total.like_count).max(metrics.likes),
            comments: count(total.comment_count).max(metrics.comments),
            shares: count(total.share_count),
            clicks: count(total.click_count),
            ..*metrics
        };
    }
    if id.contains(":ugcPost:") {
        let address =
            format!("{REST}/videoAnalytics?q=entity&entity={}&type=VIDEO_VIEW&aggregation=ALL", encode(id));
        let views: Elements<Count> = finder(cx, cx.get(address)).send().await?;
        metrics.video_views = views.elements.first().map_or(0, Count::number);
    }
    Ok(())
}

async fn member_metrics(cx: &Session<'_>, id: &str, metrics: &mut Metrics) -> Result<()> {
    if !has(cx, &["r_member_postAnalytics"]) {
        return Err(Failure::rejected(403, "the figures of a member's posts need r_member_postAnalytics"));
    }
    let kind = if id.contains(":ugcPost:") { "ugc" } else { "share" };
    let entity = format!("({kind}:{})", encode(id));
    let one = async |query: &str| -> Result<u64> {
        let address = format!(
            "{REST}/memberCreatorPostAnalytics?q=entity&entity={entity}&queryType={query}&aggregation=TOTAL"
        );
        let answer: Elements<Count> = finder(cx, cx.get(address)).send().await?;
        Ok(answer.elements.first().map_or(0, Count::number))
    };
    metrics.impressions = one("IMPRESSION").await?;
    metrics.reach = one("MEMBERS_REACHED").await?;
    metrics.shares = one("RESHARE").await?;
    metrics.likes = one("REACTION").await?.max(metrics.likes);
    metrics.comments = one("COMMENT").await?.max(metrics.comments);
    // In newer versions only.
    for (query, figure) in [("POST_SAVE", &mut metrics.saves), ("LINK_CLICKS", &mut metrics.clicks)] {
        *figure = match one(query).await {
            Err(failure) if is_closed(&failure) => return Ok(()),
            answer => answer?,
        };
    }
    Ok(())
}

#[derive(Deserialize)]
struct Actions {
    #[serde(default, rename = "likesSummary")]
    likes: Likes,
    #[serde(default, rename = "commentsSummary")]
    comments: CommentCounts,
}

#[derive(Default, Deserialize)]
struct Likes {
    #[serde(default, rename = "totalLikes")]
    total: u64,
}

#[derive(Default, Deserialize)]
struct CommentCounts {
    #[serde(default, rename = "totalFirstLevelComments")]
    first_level: u64,
    #[serde(default, rename = "aggregatedTotalComments")]
    all: u64,
}

#[derive(Deserialize)]
struct Statistics {
    #[serde(rename = "totalShareStatistics")]
    total: Totals,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Totals {
    impression_count: i64,
    unique_impressions_count: i64,
    click_count: i64,
    like_count: i64,
    comment_count: i64,
    share_count: i64,
}

/// A metric, under either of its two names.
#[derive(Deserialize)]
struct Count {
    count: Option<u64>,
    value: Option<u64>,
}

impl Count {
    fn number(&self) -> u64 {
        self.count.or(self.value).unwrap_or(0)
    }
}
