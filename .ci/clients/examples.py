"""Validates every example of an OpenAPI document against its schema. Usage: examples.py DOCUMENT"""

import json
import sys

from openapi_schema_validator import OAS31Validator

document = json.load(open(sys.argv[1]))
checked, wrong = 0, []
for operations in [*document["paths"].values(), *document["webhooks"].values()]:
    for operation in operations.values():
        bodies = list(operation["responses"].values()) + [operation.get("requestBody", {})]
        for content in (content for body in bodies for content in body.get("content", {}).values()):
            # References start at the root of the validated schema, so the components are included.
            schema = {"allOf": [content["schema"]], "components": document["components"]}
            examples = [example["value"] for example in content.get("examples", {}).values()]
            examples += [content["example"]] if "example" in content else []
            for example in examples:
                checked += 1
                faults = OAS31Validator(schema).iter_errors(example)
                wrong += [f"{operation['operationId']}: {fault.json_path} {fault.message}" for fault in faults]
print("\n".join(wrong) if wrong else f"{checked} examples fit their schemas")
sys.exit(bool(wrong))
