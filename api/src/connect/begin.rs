//! The page on which a hosted login begins.
//!
//! It shows who asks for the access, and binds the login to the browser: the button sets a cookie, without which the
//! callback refuses the login. Otherwise somebody could begin a login for themselves and send the platform's address
//! to another person, who would connect their account for the first one (RFC 9700, section 4.7). The cookie is set
//! by a form of this origin only, so that no other site can do it without the person.
//! <https://www.rfc-editor.org/rfc/rfc9700#section-4.7>

use crate::{
    app::App,
    connect::{
        binding,
        brand::Brand,
        callback::error_page,
        oauth_state::Refusal,
        pages::{self, BeginPage},
    },
    http::{admission, browser, caller::Call, problem::Problem},
    networks,
};
use domain::LoginError;
use poem::{
    Request, Response, handler,
    http::{Method, StatusCode, header},
    web::{Data, Path},
};
use store::{
    accounts::oauth_states,
    people::{audit::Actor, organizations},
};
use url::Url;

/// Serves the page, and handles its form.
#[handler]
pub(crate) async fn begin(app: Data<&App>, request: &Request, state: Path<String>) -> Response {
    let result = match admission::count_login(&app, request).await {
        Ok(()) => answer(&app, request, &state).await,
        Err(problem) => Err(problem),
    };
    result.unwrap_or_else(error_page)
}

async fn answer(app: &App, request: &Request, text: &str) -> Result<Response, Problem> {
    let (state, is_expired) = match app.config.states.open(text, (app.now)()) {
        Ok(state) if state.is_hosted => (state, false),
        Err(Refusal::Expired(state)) => (state, true),
        Ok(_) | Err(Refusal::Forged) => return Ok(pages::invalid()),
    };
    let call = Call::new(app, state.owner, &[], &Actor::LOGIN);
    let brand = Brand::of(app, state.owner).await?;
    if is_expired {
        return Ok(pages::failed(&brand, "", LoginError::StateExpired));
    }
    let Some(intent) = oauth_states::get(call.db(), call.owner, state.id).await? else {
        return Ok(pages::failed(&brand, "", LoginError::StateExpired));
    };
    let Some(address) = networks::address_of(&call, &intent, &state, text).await? else {
        return Ok(pages::failed(&brand, &intent.platform, LoginError::ExchangeFailed));
    };
    if *request.method() == Method::POST {
        if !browser::is_ours(request) {
            return Ok(pages::invalid());
        }
        let cookie = binding::cookie(browser::is_plain(app, request), text);
        return Ok(pages::private(Response::builder().status(StatusCode::SEE_OTHER))
            .header(header::SET_COOKIE, cookie)
            .header(header::LOCATION, address)
            .finish());
    }
    let organization = organizations::name(call.db(), call.owner.org).await?.unwrap_or_default();
    let page = BeginPage {
        brand: &brand,
        platform: &intent.platform,
        organization: &organization,
        tenant_id: intent.tenant_id.as_deref(),
        platform_url: Url::parse(&address).ok(),
    };
    Ok(pages::begin(&page))
}
