"""Hooks of Schemathesis: what it sends depends on no earlier call.

OWN_KEY: the id of the key that it calls with.
"""

import os
import uuid

import schemathesis
from schemathesis.generation.meta import TestPhase

OTHER = "00000000-0000-7000-8000-000000000000"


@schemathesis.hook
def before_call(context, case, kwargs):
    keep_own_key(case)
    shorten_wait(case)
    stateful = case.meta is not None and case.meta.phase.name == TestPhase.STATEFUL
    if stateful and case.method == "POST" and case.path == "/posts":
        renew_idempotency_keys(case)


def keep_own_key(case):
    """The list of keys offers it the id of its own key; after revoking that, each further answer would be a 401."""
    if "/api-keys/" in case.path and case.path_parameters.get("id") == os.environ["OWN_KEY"]:
        case.path_parameters["id"] = OTHER


def shorten_wait(case):
    """A medium that nobody uploads is waited for to the end."""
    if case.query and str(case.query.get("wait")) in map(str, range(2, 61)):
        case.query["wait"] = 1


def renew_idempotency_keys(case):
    """A repeated key returns the first post. That may be deleted by now, and is missed by the calls that follow."""
    if isinstance(case.body, dict):
        renew(case.body, "external_ref")
    renew(case.headers, "Idempotency-Key")


def renew(values, name):
    """Replaces a valid key by a new one, of the same length unless that is too short to be unique."""
    key = values.get(name) if values else None
    if isinstance(key, str) and 1 <= len(key) <= 255:
        values[name] = uuid.uuid4().hex.ljust(len(key), "0")
