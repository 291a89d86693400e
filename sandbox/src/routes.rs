//! The routes of a simulated platform as a table.
//!
//! A row names the method, the segments of the path, what `admit` demands (scopes, a rate limit, units) and
//! the handler. Each request is admitted in one place, so that no handler can forget its scope or count twice
//! against a window.

/// Finds the route of a request, admits the request and calls the handler.
///
/// Evaluates to an `Outcome`. The handler gets the transaction, the request, what `admit` returned, and the
/// arguments of its row, which may be segments of the path. A request without a route gets `otherwise`.
macro_rules! routes {
    (
        $tx:ident, $request:ident, $path:expr, $admit:path, $otherwise:expr;
        $($method:tt $pattern:tt $(if $guard:expr)? => ($($demand:expr),*) $($handler:ident)::+ ($($argument:expr),*);)+
    ) => {
        match ($request.method.as_str(), $path) {
            $(($method, $pattern) $(if $guard)? => {
                $admit($tx, $request, $($demand),*)
                    .and_then(|caller| $($handler)::+($tx, $request, &caller, $($argument),*))
            })+
            _ => $otherwise,
        }
    };
}

pub(crate) use routes;
