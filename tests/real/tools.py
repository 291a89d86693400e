"""Calls MCP tools with the official client.

Usage: tools.py URL KEY. Reads a line of JSON for each call from stdin, `{"name": …, "arguments": …}`, and prints a line
with its result, or with the error. Ends with stdin, and with the connection.
"""

import asyncio
import json
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


async def main(url, key):
    loop = asyncio.get_running_loop()
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=300) as http:
        async with Client(streamable_http_client(url, http_client=http)) as client:
            print("ready", flush=True)
            while line := await loop.run_in_executor(None, sys.stdin.readline):
                call = json.loads(line)
                try:
                    result = await client.call_tool(call["name"], call["arguments"])
                    answer = result.model_dump(by_alias=True, mode="json")
                except Exception as error:
                    answer = {"error": reason(error)}
                print(json.dumps(answer), flush=True)


def reason(error):
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


try:
    asyncio.run(main(*sys.argv[1:]))
except Exception as error:
    # This client ends with its connection, and the call that was under way has no other answer.
    print(json.dumps({"error": reason(error)}), flush=True)
