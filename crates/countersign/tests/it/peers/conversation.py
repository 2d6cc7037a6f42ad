"""The short conversation of conversation.mjs, by a client in Python: the SDK of the first or second
generation, or FastMCP. Its arguments: the kind of client, the gate's address, and the token."""

import asyncio
import json
import sys
from contextlib import asynccontextmanager

KIND, URL, TOKEN = sys.argv[1:]
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


@asynccontextmanager
async def mcp1():
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client

    async with streamablehttp_client(URL, headers=HEADERS) as (read, write, _):
        async with ClientSession(read, write) as session:
            await session.initialize()
            yield session


@asynccontextmanager
async def mcp2():
    import httpx2
    from mcp.client import Client
    from mcp.client.streamable_http import streamable_http_client

    async with httpx2.AsyncClient(headers=HEADERS) as http:
        async with Client(streamable_http_client(URL, http_client=http)) as client:
            yield client


@asynccontextmanager
async def fastmcp():
    from fastmcp import Client
    from fastmcp.client.transports import StreamableHttpTransport

    async with Client(StreamableHttpTransport(URL, headers=HEADERS)) as client:
        # Its own methods raise errors and return bare lists; below them is a session as in the SDK.
        yield client.session


async def main() -> None:
    async with {"mcp1": mcp1, "mcp2": mcp2, "fastmcp": fastmcp}[KIND]() as client:
        tools = await client.list_tools()
        called = await client.call_tool("add", {"a": 2, "b": 40})
        refused = await client.call_tool("locked", {})
        read = await client.read_resource("memo://one")
        got = await client.get_prompt("greet", {"name": "Ada"})
        is_error = refused.isError if KIND == "mcp1" else refused.is_error
    print(
        json.dumps(
            {
                "tools": [tool.name for tool in tools.tools],
                "called": called.content[0].text,
                "refused": [is_error, refused.content[0].text],
                "read": read.contents[0].text,
                "got": got.messages[0].content.text,
            }
        )
    )


asyncio.run(main())
