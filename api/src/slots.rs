//! Posting slots: the times of the week at which an account's queued posts are published.
//!
//! Slots are local wall-clock times without a zone; a request names the zone to read them in. Posts take
//! slots in [`crate::posts::create`] and [`crate::posts::edit`].

use crate::{
    accounts::resolve::{self, QUEUED_FROM_ACCOUNT},
    http::{
        body::Json,
        caller::{Call, Caller, SchedulingRead, SchedulingWrite},
        page::{List, Paging},
        plan,
        problem::{Code, Issue, Problem},
        query::Query,
        reach,
    },
    openapi::{tag::Tag, validate::Rules},
    types::{
        enum_string::EnumString,
        time_of_day::TimeOfDay,
        time_zone,
        timestamp::{TimeBound, Timestamp},
    },
};
use chrono::{DateTime, Datelike, Utc};
use chrono_tz::Tz;
use domain::{
    AccountId,
    slot::{self, Schedule, Weekday},
};
use poem_openapi::{Object, OpenApi, types::MaybeUndefined};
use serde_json::{Map, Value};
use store::{
    page::Page,
    posts::slots::{self, Queue, Set},
};
use uuid::Uuid;

/// Number of upcoming times shown for a slot set.
const NEXT_COUNT: usize = 5;
/// Maximum number of slots that one call finds.
const MAX_COUNT: i64 = 100;
/// Latest year that a timestamp can express.
const MAX_YEAR: i32 = 9999;

/// The operations on posting slots.
pub struct Slots;

#[OpenApi(tag = "Tag::Scheduling")]
impl Slots {
    /// Set posting slots
    ///
    /// Replaces all slots of an account or of the organization. An account without slots of its own, or with
    /// an empty list, uses the organization's. Posts that hold a slot keep their time. Scope
    /// `scheduling:write`.
    #[oai(path = "/scheduling/slots", method = "put", operation_id = "setSlots")]
    async fn set(
        &self,
        caller: Caller<SchedulingWrite>,
        body: Json<NewSlotSet>,
    ) -> Result<Json<SlotSet>, Problem> {
        Ok(Json(set(&caller.call(), body.0).await?))
    }

    /// List posting slots
    ///
    /// Lists the organization's slots first, then those of each account. A page has up to some 5,000 slots, so that it may
    /// have fewer sets than `limit`, with a limited key none, while `next_cursor` leads to more. Scope
    /// `scheduling:read`.
    #[oai(path = "/scheduling/slots", method = "get", operation_id = "listSlots")]
    async fn list(
        &self,
        caller: Caller<SchedulingRead>,
        query: Query<Paging>,
    ) -> Result<Json<SlotSets>, Problem> {
        Ok(Json(list(&caller.call(), &query.0).await?))
    }

    /// Find open slots
    ///
    /// Returns the next slots of an account that no post holds, up to 365 days ahead. This reserves nothing;
    /// creating a post with `queued_from_account` does. Scope `scheduling:read`.
    #[oai(path = "/scheduling/find-slot", method = "get", operation_id = "findSlot")]
    async fn find(
        &self,
        caller: Caller<SchedulingRead>,
        query: Query<Filter>,
    ) -> Result<Json<OpenSlots>, Problem> {
        Ok(Json(find(&caller.call(), query.0).await?))
    }
}

/// Replaces the slots of an account, or of the organization.
pub async fn set(call: &Call<'_>, body: NewSlotSet) -> Result<SlotSet, Problem> {
    let account = body.social_account_id.value().copied().map(AccountId);
    if account.is_none() && call.bound.is_limited() {
        let detail = format!("this API key is limited to {}; name one of its accounts", call.bound);
        return Err(reach::forbidden(detail));
    }
    let slots = body.slots.into_iter().map(slot::Slot::from).collect();
    let plan = plan::of(call).await?;
    let set = slots::set(call.db(), call.access(), account, slots, plan.slots, call.now()).await?;
    let set = set.ok_or_else(|| resolve::no_account("social_account_id"))?;
    let set = set.map_err(|exceeded| plan.refuse_more("posting slots", exceeded))?;
    Ok(SlotSet::of(set, call.now()))
}

/// Lists slot sets.
pub async fn list(call: &Call<'_>, paging: &Paging) -> Result<SlotSets, Problem> {
    let page = List::Slots.paged(call, paging)?;
    let Page { items: sets, next } = slots::list(call.db(), call.access(), page).await?;
    let now = call.now();
    let next_cursor = List::Slots.next(call, next);
    Ok(SlotSets { data: sets.into_iter().map(|set| SlotSet::of(set, now)).collect(), next_cursor })
}

/// Finds the next open slots of an account.
pub async fn find(call: &Call<'_>, query: Filter) -> Result<OpenSlots, Problem> {
    let account = resolve::account(call, &query.account, "account").await?;
    let queue = queue(call, account.id, query.timezone.as_deref()).await?;
    let now = call.now();
    let after = query.after.map_or(now, |TimeBound(after)| after.max(now));
    let count = query.count.unwrap_or(1).clamp(1, MAX_COUNT) as usize;
    let mut open = slots::open(call.db(), call.access(), &queue, after, count).await?;
    open.retain(|at| at.year() <= MAX_YEAR);
    let slot = *open.first().ok_or_else(|| full(&queue, "account"))?;
    Ok(OpenSlots {
        slot: slot.into(),
        slots: open.into_iter().map(Timestamp).collect(),
        timezone: queue.schedule.zone.name().to_owned(),
    })
}

/// Returns the queue of an account, with its slots in the given zone.
pub(crate) async fn queue(
    call: &Call<'_>,
    account: AccountId,
    timezone: Option<&str>,
) -> Result<Queue, Problem> {
    let slots = slots::of(call.db(), call.access(), account).await?;
    Ok(Queue { account, schedule: Schedule { slots, zone: time_zone::read(timezone) } })
}

/// Returns the slot that a post queued now would get, or the problem that it would fail with.
pub(crate) async fn next(call: &Call<'_>, queue: &Queue) -> Result<Result<DateTime<Utc>, Problem>, Problem> {
    let open = slots::open(call.db(), call.access(), queue, call.now(), 1).await?;
    Ok(open.first().copied().ok_or_else(|| full(queue, QUEUED_FROM_ACCOUNT)))
}

/// 422: the queue has no open slot. `field` named the account.
pub(crate) fn full(queue: &Queue, field: &str) -> Problem {
    let (detail, message) = if queue.schedule.slots.is_empty() {
        ("no posting slots are set up for the account", "Has no posting slots")
    } else {
        ("the account has no open posting slot within 365 days", "Has no open posting slot within 365 days")
    };
    Problem::new(Code::NoOpenSlot, detail).with_issues(vec![Issue::custom([field], message)])
}

/// Posting slots to set.
#[derive(Debug, Object)]
pub struct NewSlotSet {
    /// Account id; null for the organization. Required, so that a misspelled member does not replace the
    /// organization's slots.
    #[oai(nullable)]
    pub social_account_id: MaybeUndefined<Uuid>,
    /// The slots; replaces all existing ones.
    #[oai(validator(max_items = 168, unique_items))]
    pub slots: Vec<Slot>,
}

impl Rules for NewSlotSet {
    fn check(body: &Map<String, Value>, issues: &mut Vec<Issue>) {
        if !body.contains_key("social_account_id") {
            issues.push(Issue::wrong_type(&["social_account_id".into()], "string", "undefined"));
        }
    }
}

/// A weekly recurring time.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Object)]
pub struct Slot {
    /// Day of the week.
    pub weekday: EnumString<Weekday>,
    /// Local time of day, from `00:00` to `23:59`. A time skipped by a clock change moves forward by the gap;
    /// of a time that occurs twice, the first counts.
    pub time: TimeOfDay,
}

impl From<Slot> for slot::Slot {
    fn from(slot: Slot) -> Self {
        Self { weekday: slot.weekday.value(), time: slot.time.0 }
    }
}

impl From<slot::Slot> for Slot {
    fn from(slot: slot::Slot) -> Self {
        Self { weekday: EnumString::of(slot.weekday.as_str()), time: TimeOfDay(slot.time) }
    }
}

/// The slots of an account or of the organization.
#[derive(Debug, Object)]
pub struct SlotSet {
    /// The slot set's id.
    pub id: Uuid,
    /// Account id; null for the organization.
    #[oai(nullable)]
    pub social_account_id: Option<Uuid>,
    /// The slots.
    pub slots: Vec<Slot>,
    /// The next five times in UTC, whether a post holds them or not.
    pub next_slots: Vec<Timestamp>,
    /// Creation time.
    pub created_at: Timestamp,
    /// Time of the last update.
    pub updated_at: Timestamp,
}

impl SlotSet {
    fn of(set: Set, now: DateTime<Utc>) -> Self {
        let schedule = Schedule { slots: set.slots, zone: Tz::UTC };
        Self {
            id: set.id,
            social_account_id: set.account.map(|account| account.0),
            next_slots: schedule.after(now).take(NEXT_COUNT).map(Timestamp).collect(),
            slots: schedule.slots.into_iter().map(Slot::from).collect(),
            created_at: set.created_at.into(),
            updated_at: set.updated_at.into(),
        }
    }
}

/// A page of the slots of an organization.
#[derive(Debug, Object)]
pub struct SlotSets {
    /// The slot sets; the organization's first.
    pub data: Vec<SlotSet>,
    /// Cursor of the next page; absent on the last page.
    #[oai(skip_serializing_if_is_none)]
    pub next_cursor: Option<String>,
}

/// Filter for open slots.
#[derive(Debug, Object)]
#[oai(rename = "SlotFilter")]
pub struct Filter {
    /// Account id, username or platform-side id.
    #[oai(validator(min_length = 1))]
    pub account: String,
    /// IANA time zone of the slots; `UTC` by default.
    pub timezone: Option<String>,
    /// Return slots after this time; now by default and at the earliest.
    pub after: Option<TimeBound>,
    /// Number of slots, 1 to 100; values outside are clamped. 1 by default.
    pub count: Option<i64>,
}

impl Rules for Filter {
    fn check(query: &Map<String, Value>, issues: &mut Vec<Issue>) {
        time_zone::check(query, "timezone", issues);
    }
}

/// Open slots.
#[derive(Debug, Object)]
pub struct OpenSlots {
    /// The next open slot.
    pub slot: Timestamp,
    /// The open slots found, earliest first.
    pub slots: Vec<Timestamp>,
    /// IANA time zone of the slots.
    pub timezone: String,
}
