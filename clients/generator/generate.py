"""Writes the generated part of both client packages from `api/openapi.json`.

The types come from openapi-typescript and datamodel-code-generator. This file writes the resources: for each operation
of the document a method, whose resource is the first segment of the path and whose name is the operation's id without
the name of the resource. A new operation needs no change here, unless its name would be ambiguous.

`./generate` prepares the tools and runs it.
"""

import copy
import json
import keyword
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CLIENTS = Path(__file__).resolve().parent.parent
DOCUMENT = CLIENTS.parent / "api" / "openapi.json"
TYPESCRIPT = CLIENTS / "typescript" / "src" / "generated"
PYTHON = CLIENTS / "python" / "src" / "fanfare_client" / "generated"

# Names where the rule gives a poor or an ambiguous one.
NAMES = {
    "createPosts": "createBatch",
    # `upload` is the helper that also sends the file, and `import` a keyword.
    "uploadMedia": "createUpload",
    "importMedia": "importUrl",
    "redeliverWebhookDelivery": "redeliver",
    "connectBlueskyAccount": "connectBluesky",
}
# Operations with POST that may be repeated after a lost answer, according to their descriptions, without an idempotency
# key. GET, PUT, PATCH and DELETE always may.
REPEATABLE = {"validatePost", "confirmMedia"}
# Resources whose class has further methods, written by hand as a mixin of the same name.
BY_HAND = {"events", "media", "posts"}

HEADER = "Generated from api/openapi.json by clients/generator/generate. Do not edit."


@dataclass(frozen=True)
class Operation:
    id: str
    method: str
    path: str
    summary: str
    description: str
    path_parameters: list[dict[str, Any]]
    query: list[dict[str, Any]]
    body: str | None
    body_required: bool
    response: str
    item: str | None
    """Type of a list's items; None for what is not a list."""
    paging: str
    """How a list continues: `cursor`, `after`, `offset` or `none`."""
    has_key: bool
    """True if the operation takes an idempotency key."""

    @property
    def resource(self) -> str:
        return camel(self.path.split("/")[1].replace("-", " "))

    @property
    def name(self) -> str:
        if self.id in NAMES:
            return NAMES[self.id]
        resource = pascal(self.path.split("/")[1].replace("-", " "))
        # Longest first: `listApiKeys` is `list`, not `lists`.
        for noun in sorted({resource, singular(resource)}, key=len, reverse=True):
            verb, found, rest = self.id.partition(noun)
            if found and (rest == "" or rest[0].isupper()):
                return verb + rest
        return self.id

    @property
    def is_repeatable(self) -> bool:
        return self.method != "POST" or self.id in REPEATABLE


def words(text: str) -> list[str]:
    return re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", text)


def camel(text: str) -> str:
    first, *rest = [word.lower() for word in words(text)]
    return first + "".join(word.capitalize() for word in rest)


def pascal(text: str) -> str:
    return "".join(word.capitalize() for word in words(text))


def snake(text: str) -> str:
    return "_".join(word.lower() for word in words(text))


def singular(noun: str) -> str:
    return noun[:-1] if noun.endswith("s") else noun


def reference(schema: dict[str, Any]) -> str:
    return schema["$ref"].rsplit("/", 1)[1]


def operations(document: dict[str, Any]) -> list[Operation]:
    found = []
    for path, item in document["paths"].items():
        for method, operation in item.items():
            parameters = operation.get("parameters", [])
            body = operation.get("requestBody")
            responses = [
                content["schema"]
                for status, response in operation["responses"].items()
                if status.startswith("2")
                for content in response["content"].values()
            ]
            answer = reference(responses[0])
            if any(reference(other) != answer for other in responses):
                raise SystemExit(f"{operation['operationId']} has several types of responses")
            query = [parameter for parameter in parameters if parameter["in"] == "query"]
            # The older spelling of a parameter that has two.
            names = {parameter["name"] for parameter in query}
            query = [one for one in query if one["name"] == snake(one["name"]) or snake(one["name"]) not in names]
            if query and body:
                raise SystemExit(f"{operation['operationId']} has a query and a body: give its method a signature")
            properties = document["components"]["schemas"][answer]["properties"]
            rows = properties.get("data", {}) if method == "get" else {}
            is_list = rows.get("type") == "array" and set(properties) <= {"data", "next_cursor", "pagination"}
            paging = "none"
            for parameter, key in (("cursor", "next_cursor"), ("after", "next_cursor"), ("offset", "pagination")):
                if is_list and key in properties and any(one["name"] == parameter for one in query):
                    paging = parameter
            if is_list and len(properties) > 1 and paging == "none":
                raise SystemExit(f"{operation['operationId']} is paginated in an unknown way")
            found.append(
                Operation(
                    id=operation["operationId"],
                    method=method.upper(),
                    path=path,
                    summary=operation["summary"],
                    description=operation.get("description", ""),
                    path_parameters=[one for one in parameters if one["in"] == "path"],
                    query=query,
                    body=reference(body["content"]["application/json"]["schema"]) if body else None,
                    body_required=bool(body and body.get("required")),
                    response=answer,
                    item=reference(rows["items"]) if is_list else None,
                    paging=paging,
                    has_key=any(one["in"] == "header" and one["name"] == "Idempotency-Key" for one in parameters),
                )
            )
    methods = [(operation.resource, operation.name) for operation in found]
    for method in {method for method in methods if methods.count(method) > 1}:
        raise SystemExit(f"several operations are {'.'.join(method)}: give them names in NAMES")
    return found


def resources(document: dict[str, Any]) -> dict[str, list[Operation]]:
    by_resource: dict[str, list[Operation]] = {}
    for operation in operations(document):
        by_resource.setdefault(operation.resource, []).append(operation)
    return dict(sorted(by_resource.items()))


def event_schemas(document: dict[str, Any]) -> dict[str, str]:
    """Schemas of the events, by name of the event."""
    return {
        name: reference(item["post"]["requestBody"]["content"]["application/json"]["schema"])
        for name, item in document["webhooks"].items()
    }


def with_event_ids(document: dict[str, Any]) -> dict[str, Any]:
    """Adds the id of an event, which is in a header of a webhook and in the body of a list."""
    document = copy.deepcopy(document)
    for name in event_schemas(document).values():
        schema = document["components"]["schemas"][name]
        schema["properties"]["id"] = {"type": "string", "description": "Id of the event, the same in every attempt"}
        schema["required"].append("id")
    return document


# --- TypeScript


def without_responses(document: dict[str, Any]) -> dict[str, Any]:
    """Leaves out what the resources don't use: headers, errors and webhooks are the same in every operation."""
    del document["webhooks"]
    for item in document["paths"].values():
        for operation in item.values():
            operation["responses"] = {
                status: {
                    "description": response["description"],
                    "content": {kind: {"schema": body["schema"]} for kind, body in response["content"].items()},
                }
                for status, response in operation["responses"].items()
                if status.startswith("2")
            }
    return document


def comment(operation: Operation, indentation: str) -> list[str]:
    text = f"{operation.summary}.\n\n{operation.description}".strip().replace("*/", "*\\/")
    return [f"{indentation}/**", *(f"{indentation} * {line}".rstrip() for line in text.split("\n")), f"{indentation} */"]


def typescript_method(operation: Operation) -> Iterator[str]:
    arguments, members = [], [f'method: "{operation.method}"']
    path = operation.path
    for parameter in operation.path_parameters:
        name = camel(parameter["name"])
        arguments.append(f"{name}: string")
        path = path.replace("{" + parameter["name"] + "}", "${encodeURIComponent(" + name + ")}")
    members.append(f"path: `{path}`" if "${" in path else f'path: "{path}"')
    if operation.query:
        optional = "" if any(one.get("required") for one in operation.query) else "?"
        arguments.append(f"query{optional}: Query<\"{operation.id}\">")
        members.append("query")
    if operation.body:
        arguments.append(f"body{'' if operation.body_required else '?'}: schema.{operation.body}")
        members.append("body")
    if operation.has_key:
        members.append("takesKey: true")
    elif operation.is_repeatable and operation.method == "POST":
        members.append("isRepeatable: true")
    options = "CreateOptions" if operation.has_key else "RequestOptions"
    arguments.append(f"options?: {options}")
    call = f"{{ {', '.join(members)} }}, options"
    yield from comment(operation, "  ")
    if operation.item:
        # A type of its own, so that a page keeps further members of the response.
        returns = f"PagePromise<schema.{operation.item}>"
        body = f'return this.api.list({call}, "{operation.paging}");'
    else:
        returns = f"Promise<schema.{operation.response}>"
        body = f"return this.api.call({call});"
    yield f"  {operation.name}({', '.join(arguments)}): {returns} {{"
    yield f"    {body}"
    yield "  }"


def write_typescript(document: dict[str, Any]) -> None:
    TYPESCRIPT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        prepared = Path(directory) / "openapi.json"
        prepared.write_text(json.dumps(without_responses(with_event_ids(document))))
        subprocess.run(
            [
                "npx", "--no-install", "openapi-typescript", prepared, "--default-non-nullable=false", "--root-types",
                "--root-types-no-schema-prefix", "--output", TYPESCRIPT / "schema.ts",
            ],
            cwd=CLIENTS / "typescript", check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
    schema = (TYPESCRIPT / "schema.ts").read_text()
    (TYPESCRIPT / "schema.ts").write_text(f"// {HEADER}\n{schema}")

    by_resource = resources(document)
    lines = [
        f"// {HEADER}",
        "",
        'import type { Api, CreateOptions, RequestOptions } from "../api.js";',
        'import type { PagePromise } from "../pages.js";',
        'import type * as schema from "./schema.js";',
        "",
        "/** Query parameters of an operation. */",
        "type Query<Id extends keyof schema.operations> = NonNullable<schema.operations[Id][\"parameters\"][\"query\"]>;",
        "",
        "/** An event that a webhook delivers; `event` tells which. */",
        "export type WebhookEvent =",
        *(f"  | schema.{name}" for name in event_schemas(document).values()),
    ]
    lines[-1] += ";"
    for resource, found in by_resource.items():
        lines += ["", f"export class {pascal(resource)}Operations {{", "  constructor(protected readonly api: Api) {}"]
        for operation in found:
            lines += ["", *typescript_method(operation)]
        lines += ["}"]
    lines += ["", "/** The resources that have no methods besides the operations of the document. */"]
    lines += ["export abstract class Resources {", "  protected abstract readonly api: Api;"]
    for resource in by_resource:
        if resource not in BY_HAND:
            type_name = f"{pascal(resource)}Operations"
            lines += [f"  get {resource}(): {type_name} {{", f"    return new {type_name}(this.api);", "  }"]
    lines += ["}", ""]
    (TYPESCRIPT / "resources.ts").write_text("\n".join(lines))


# --- Python


def reachable(document: dict[str, Any], roots: set[str]) -> set[str]:
    schemas, found, queue = document["components"]["schemas"], set(), sorted(roots)
    while queue:
        name = queue.pop()
        if name not in found:
            found.add(name)
            queue += re.findall(r'#/components/schemas/(\w+)"', json.dumps(schemas[name]))
    return found


def references_of(value: Any) -> set[str]:
    return set(re.findall(r'#/components/schemas/(\w+)"', json.dumps(value)))


def prepared(schema: Any, is_response: bool) -> Any:
    """Changes a schema for the types of Python."""
    if isinstance(schema, list):
        return [prepared(one, is_response) for one in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {key: prepared(value, is_response) for key, value in schema.items() if key not in ("example", "examples")}
    if len(schema.get("allOf", [])) == 1 and "$ref" in schema["allOf"][0]:
        schema |= schema.pop("allOf")[0]
    # Ids and URLs stay texts, as they are used; other formats have no type in Python.
    if isinstance(schema.get("format"), str) and schema["format"] != "date-time":
        del schema["format"]
    # The service checks the limits, and tells which is exceeded.
    for limit in ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minimum", "maximum", "pattern"):
        if not isinstance(schema.get(limit), dict):
            schema.pop(limit, None)
    if is_response and len(schema.get("enum", [])) > 1:
        # A later version of the service may have further values.
        description = {"description": schema["description"]} if "description" in schema else {}
        return {"anyOf": [{key: value for key, value in schema.items() if key != "description"}, {"type": "string"}], **description}
    if not is_response:
        # The service fills in defaults.
        if "type" in schema:
            schema.pop("default", None)
        if schema.get("format") == "date-time":
            null = [{"type": "null"}] if "null" in schema.get("type", []) else []
            description = {"description": schema["description"]} if "description" in schema else {}
            return {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "string"}, *null], **description}
    return schema


def python_types(document: dict[str, Any], roots: set[str], is_response: bool, output: Path, *options: str) -> None:
    schemas = document["components"]["schemas"]
    names = sorted(reachable(document, roots))
    subset = {
        "openapi": document["openapi"],
        "info": document["info"],
        "paths": {},
        "components": {"schemas": {name: prepared(schemas[name], is_response) for name in names}},
    }
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory) / "openapi.json"
        source.write_text(json.dumps(subset))
        subprocess.run(
            [
                Path(sys.executable).parent / "datamodel-codegen", "--input", source, "--input-file-type", "openapi",
                "--output", output, "--target-python-version", "3.10", "--disable-timestamp", "--formatters", "ruff-format",
                "--enum-field-as-literal", "all", "--use-standard-collections", "--use-union-operator",
                "--use-schema-description", "--use-type-alias", "--keep-model-order", "--naming-strategy",
                "parent-prefixed", *options,
            ],
            check=True,
        )  # fmt: skip
    text = output.read_text()
    output.write_text(f"# {HEADER}\n" + re.sub(r"^# generated by .*\n(#.*\n)*", "", text))


def python_query_type(schema: dict[str, Any]) -> str:
    if "allOf" in schema:
        schema = schema["allOf"][0]
    if "$ref" in schema:
        return f"params.{reference(schema)}"
    kind = schema["type"]
    if kind == "string":
        return "str | datetime" if schema.get("format", "").startswith("date") else "str"
    if kind == "object":
        return "Mapping[str, str]"
    return {"integer": "int", "boolean": "bool", "array": "Sequence[str]"}[kind]


def docstring(operation: Operation) -> list[str]:
    text = f"{operation.summary}.\n\n{operation.description}".strip().replace("\\", "\\\\")
    lines = text.split("\n")
    if len(lines) == 1:
        return [f'        """{lines[0]}"""']
    return [f'        """{lines[0]}', *(f"        {line}".rstrip() for line in lines[1:]), '        """']


def python_name(name: str) -> str:
    name = snake(name)
    return name + "_" if keyword.iskeyword(name) else name


def python_method(operation: Operation, is_async: bool) -> Iterator[str]:
    arguments, call = ["self"], [f'"{operation.method}"']
    path = operation.path
    for parameter in operation.path_parameters:
        name = python_name(parameter["name"])
        arguments.append(f"{name}: str")
        path = path.replace("{" + parameter["name"] + "}", "{quote(" + name + ', safe="")}')
    call.append(f'f"{path}"' if "quote(" in path else f'"{path}"')
    arguments.append("*")
    if operation.query:
        pairs = []
        for parameter in sorted(operation.query, key=lambda one: not one.get("required")):
            name = python_name(parameter["name"])
            kind = python_query_type(parameter["schema"])
            arguments.append(f"{name}: {kind}" if parameter.get("required") else f"{name}: {kind} | None = None")
            pairs.append(f'"{parameter["name"]}": {name}')
        call.append(f"query={{{', '.join(pairs)}}}")
    if operation.has_key:
        arguments.append("idempotency_key: str | None = None")
        call.append("key=idempotency_key or new_key()")
    elif operation.is_repeatable and operation.method == "POST":
        call.append("is_repeatable=True")
    arguments.append("timeout: float | None = None")
    call.append("timeout=timeout")
    if operation.body:
        arguments.append(f"**body: Unpack[params.{operation.body}]")
        call.append("body=body")
    call.append(f'paging="{operation.paging}"' if operation.item else f"model=models.{operation.response}")
    if operation.item:
        call.append(f"item=models.{operation.item}")
    prefix, verb = "    def", "list" if operation.item else "call"
    if operation.item:
        returns = f"{'AsyncPaginator' if is_async else 'Page'}[models.{operation.item}]"
        result = "return self._api.list"
    else:
        returns = f"models.{operation.response}"
        prefix = "    async def" if is_async else prefix
        result = f"return {'await ' if is_async else ''}self._api.{verb}"
    # A method named `list` would hide the type in the rest of the class, so annotations use no `list`.
    yield f"{prefix} {python_name(operation.name)}({', '.join(arguments)}) -> {returns}:"
    yield from docstring(operation)
    yield f"        {result}({', '.join(call)})"


def write_python(document: dict[str, Any]) -> None:
    PYTHON.mkdir(parents=True, exist_ok=True)
    (PYTHON / "__init__.py").write_text(f'"""{HEADER}"""\n')
    by_resource = resources(document)
    found = [operation for group in by_resource.values() for operation in group]
    events = event_schemas(document)
    python_types(
        with_event_ids(document),
        {operation.response for operation in found} | {one.item for one in found if one.item} | set(events.values()) | {"Problem"},
        True,
        PYTHON / "models.py",
        "--output-model-type", "pydantic_v2.BaseModel", "--base-class", "fanfare_client._model.Model", "--snake-case-field",
        "--use-field-description", "--use-annotated", "--strict-nullable",
    )  # fmt: skip
    python_types(
        document,
        {operation.body for operation in found if operation.body}
        | {name for operation in found for name in references_of(operation.query)},
        False,
        PYTHON / "params.py",
        "--output-model-type", "typing.TypedDict", "--use-field-description",
    )  # fmt: skip

    lines = [
        f'"""{HEADER}"""',
        "",
        "from __future__ import annotations",
        "",
        "from collections.abc import Mapping, Sequence",
        "from datetime import datetime",
        "from functools import cached_property",
        "from typing import TypeAlias",
        "from urllib.parse import quote",
        "",
        "from typing_extensions import Unpack",
        "",
        "from .._api import Api, AsyncApi, new_key",
        "from .._pages import AsyncPaginator, Page",
        "from . import models, params",
        "",
        "WebhookEvent: TypeAlias = (",
        "    " + "\n    | ".join(f"models.{name}" for name in events.values()),
        ")",
        '"""An event that a webhook delivers; `event` tells which."""',
        "",
        "EVENTS: dict[str, type[WebhookEvent]] = {",
        *(f'    "{event}": models.{name},' for event, name in events.items()),
        "}",
        '"""The models of the events, by name."""',
    ]
    for is_async in (False, True):
        prefix = "Async" if is_async else ""
        for resource, group in by_resource.items():
            lines += ["", "", f"class {prefix}{pascal(resource)}Operations:"]
            lines += [f"    def __init__(self, api: {prefix}Api) -> None:", "        self._api = api"]
            for operation in group:
                lines += ["", *python_method(operation, is_async)]
        lines += ["", "", f"class {prefix}Resources:"]
        lines += ['    """The resources that have no methods besides the operations of the document."""', ""]
        lines += [f"    _api: {prefix}Api"]
        for resource in by_resource:
            if resource not in BY_HAND:
                type_name = f"{prefix}{pascal(resource)}Operations"
                lines += ["", "    @cached_property", f"    def {snake(resource)}(self) -> {type_name}:"]
                lines += [f"        return {type_name}(self._api)"]
    (PYTHON / "resources.py").write_text("\n".join(lines) + "\n")
    ruff = Path(sys.executable).parent / "ruff"
    config = CLIENTS / "python" / "pyproject.toml"
    subprocess.run([ruff, "check", "--quiet", "--fix-only", "--select", "I,F401", "--config", config, PYTHON], check=True)
    subprocess.run([ruff, "format", "--quiet", "--config", config, PYTHON], check=True)


def main() -> None:
    document = json.loads(DOCUMENT.read_text())
    write_typescript(document)
    write_python(document)


if __name__ == "__main__":
    main()
