//! Posting slots: the times of the week at which an account's queue goes out.
//!
//! Slots are times on the wall and belong to no zone; whoever asks for one says in which zone he reads
//! them. What takes a slot stands in [`crate::posts::create`] and [`crate::posts::edit`].

use crate::{
    accounts::resolve::{self, QUEUED_FROM_ACCOUNT},
    http::{
        body::Json,
        caller::{Call, Caller, SchedulingRead, SchedulingWrite},
        problem::{Code, Issue, Problem},
        query::Query,
    },
    openapi::{tag::Tag, validate::Rules},
    types::{enum_string::EnumString, time_of_day::TimeOfDay, time_zone, timestamp::Timestamp},
};
use chrono::{DateTime, Datelike, Utc};
use chrono_tz::Tz;
use domain::{
    AccountId,
    slot::{self, Schedule, Weekday},
};
use poem_openapi::{Object, OpenApi};
use serde_json::{Map, Value};
use store::slots::{self, Queue, Set};
use uuid::Uuid;

/// How many of the next times of a set are shown.
const NEXT_COUNT: usize = 5;
/// How many slots are found in one call.
const MAX_COUNT: i64 = 100;
/// The last year that a timestamp can be in.
const MAX_YEAR: i32 = 9999;

/// The operations on posting slots.
pub struct Slots;

#[OpenApi(tag = "Tag::Scheduling")]
impl Slots {
    /// Set posting slots
    ///
    /// Replaces all slots of an account, or those of the organization, which count for every account that
    /// has none of its own: an account without slots, or with an empty list of them, goes by the
    /// organization's. Posts that hold a slot keep their time. Scope `scheduling:write`.
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
    /// The organization's first, then those of each account. Scope `scheduling:read`.
    #[oai(path = "/scheduling/slots", method = "get", operation_id = "listSlots")]
    async fn list(&self, caller: Caller<SchedulingRead>) -> Result<Json<SlotSets>, Problem> {
        Ok(Json(list(&caller.call()).await?))
    }

    /// Find open slots
    ///
    /// The next slots of an account that no post holds, up to 365 days ahead. None is reserved: creating
    /// a post with `queued_from_account` does that. Scope `scheduling:read`.
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
    let account = body.social_account_id.map(AccountId);
    let slots = body.slots.into_iter().map(slot::Slot::from).collect();
    let set = slots::set(call.db(), call.owner, account, slots, call.now()).await?;
    let set = set.ok_or_else(|| resolve::no_account("social_account_id"))?;
    Ok(SlotSet::of(set, call.now()))
}

/// All slots.
pub async fn list(call: &Call<'_>) -> Result<SlotSets, Problem> {
    let (sets, now) = (slots::list(call.db(), call.owner).await?, call.now());
    Ok(SlotSets { data: sets.into_iter().map(|set| SlotSet::of(set, now)).collect() })
}

/// The next open slots of an account.
pub async fn find(call: &Call<'_>, query: Filter) -> Result<OpenSlots, Problem> {
    let account = resolve::account(call, &query.account, "account").await?;
    let queue = queue(call, account.id, query.timezone.as_deref()).await?;
    let now = call.now();
    let after = query.after.map_or(now, |Timestamp(after)| after.max(now));
    let count = query.count.unwrap_or(1).clamp(1, MAX_COUNT) as usize;
    let mut open = slots::open(call.db(), call.owner, &queue, after, count).await?;
    open.retain(|at| at.year() <= MAX_YEAR);
    let slot = *open.first().ok_or_else(|| full(&queue, "account"))?;
    Ok(OpenSlots {
        slot: slot.into(),
        slots: open.into_iter().map(Timestamp).collect(),
        timezone: queue.schedule.zone.name().to_owned(),
    })
}

/// What a post waits in that is queued from an account.
pub(crate) async fn queue(
    call: &Call<'_>,
    account: AccountId,
    timezone: Option<&str>,
) -> Result<Queue, Problem> {
    let slots = slots::of(call.db(), call.owner, account).await?;
    Ok(Queue { account, schedule: Schedule { slots, zone: time_zone::read(timezone) } })
}

/// What would refuse a post in this queue now.
pub(crate) async fn crowded(call: &Call<'_>, queue: &Queue) -> Result<Option<Problem>, Problem> {
    let open = slots::open(call.db(), call.owner, queue, call.now(), 1).await?;
    Ok(open.is_empty().then(|| full(queue, QUEUED_FROM_ACCOUNT)))
}

/// A queue has no open slot; `field` named the account.
pub(crate) fn full(queue: &Queue, field: &str) -> Problem {
    let (detail, message) = if queue.schedule.slots.is_empty() {
        ("no posting slots are set up for the account", "Has no posting slots")
    } else {
        ("the account has no open posting slot within 365 days", "Has no open posting slot within 365 days")
    };
    Problem::new(Code::NoOpenSlot, detail).with_issues(vec![Issue::custom([field], message)])
}

/// Slots to set.
#[derive(Debug, Object)]
pub struct NewSlotSet {
    /// The account; null for the organization.
    pub social_account_id: Option<Uuid>,
    /// The slots: these and no others.
    #[oai(validator(max_items = 168, unique_items))]
    pub slots: Vec<Slot>,
}

impl Rules for NewSlotSet {}

/// A time that comes again every week.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Object)]
pub struct Slot {
    /// The day.
    pub weekday: EnumString<Weekday>,
    /// The time of that day, from `00:00` to `23:59`, as the clocks of a zone show it. One that a change
    /// of the clock skips moves forward by the gap; one that comes twice is the first.
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
    /// Its identifier.
    pub id: Uuid,
    /// The account; null for the organization.
    #[oai(nullable)]
    pub social_account_id: Option<Uuid>,
    /// The slots, as they were set.
    pub slots: Vec<Slot>,
    /// The next five times they come, read in UTC, whether a post holds them or not.
    pub next_slots: Vec<Timestamp>,
    /// When they were first set.
    pub created_at: Timestamp,
    /// When they were last set.
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

/// All slots of an organization.
#[derive(Debug, Object)]
pub struct SlotSets {
    /// The organization's first, then those of each account.
    pub data: Vec<SlotSet>,
}

/// Which slots to find.
#[derive(Debug, Object)]
#[oai(rename = "SlotFilter")]
pub struct Filter {
    /// The account: its id, username or platform-side id.
    #[oai(validator(min_length = 1))]
    pub account: String,
    /// The IANA time zone that the slots are read in; `UTC` by default.
    pub timezone: Option<String>,
    /// Slots after this time. Now by default, and at the earliest.
    pub after: Option<Timestamp>,
    /// How many to find, 1 to 100; values beyond are clamped. 1 by default.
    pub count: Option<i64>,
}

impl Rules for Filter {
    fn check(query: &Map<String, Value>, issues: &mut Vec<Issue>) {
        time_zone::check(query, "timezone", issues);
    }
}

/// Slots that no post holds.
#[derive(Debug, Object)]
pub struct OpenSlots {
    /// The next one.
    pub slot: Timestamp,
    /// As many as were asked for and are open, the next one first.
    pub slots: Vec<Timestamp>,
    /// The zone they were read in.
    pub timezone: String,
}
