//! Placeholder.
use crate::*;
use async_trait::async_trait;
pub(crate) struct X;
#[async_trait]
impl Platform for X {
    fn id(&self) -> &'static str { "x" }
    fn capabilities(&self) -> &'static Capabilities { todo!() }
    fn connection(&self) -> &'static Connection { todo!() }
    async fn identities(&self, _: &Session<'_>) -> Result<Vec<Identity>> { todo!() }
    async fn refresh(&self, _: &Session<'_>) -> Result<Grant> { todo!() }
    async fn prepare(&self, _: &Session<'_>, _: &Publication, _: Checkpoint) -> Result<Prepared> { todo!() }
    async fn commit(&self, _: &Session<'_>, _: &Publication, _: &Checkpoint) -> Result<Committed> { todo!() }
    async fn locate(&self, _: &Session<'_>, _: &Publication, _: &Checkpoint) -> Result<Located> { todo!() }
    async fn permalink(&self, _: &Session<'_>, _: &str) -> Result<String> { todo!() }
}
