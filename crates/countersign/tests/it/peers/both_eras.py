"""A server on the Python SDK (package `mcp`), which speaks both eras of the protocol. It serves stdio;
with the argument `http` it serves HTTP, and prints its address. Each result says in which revision its
tool was called."""

import asyncio
import socket
import sys
from typing import Annotated

import uvicorn
from mcp.server.mcpserver import Context, Elicit, ListRoots, MCPServer, Resolve
from mcp_types import ListRootsResult
from pydantic import BaseModel

server = MCPServer("both-eras", instructions="Handle with care")


class Name(BaseModel):
    name: str


def ask_name():
    return Elicit("Who are you?", Name)


def ask_roots():
    return ListRoots()


@server.tool()
def revision(ctx: Context) -> str:
    return str(ctx.protocol_version)


@server.tool()
def greet(ctx: Context, greeting: str, name: Annotated[Name, Resolve(ask_name)]) -> str:
    return f"{ctx.protocol_version}: {greeting}, {name.name}"


@server.tool()
def roots(ctx: Context, found: Annotated[ListRootsResult, Resolve(ask_roots)]) -> str:
    return f"{ctx.protocol_version}: {found.roots[0].uri}"


@server.tool()
async def work(ctx: Context) -> str:
    await ctx.report_progress(1, 2)
    return "done"


@server.tool()
async def grow(ctx: Context) -> str:
    server.add_tool(lambda: "new", name="grown")
    await ctx.notify_tools_changed()
    return "grown"


@server.resource("memo://a")
def memo() -> str:
    return "a memo"


@server.prompt()
def hello(name: str) -> str:
    return f"Hello, {name}"


def main():
    if "http" not in sys.argv:
        return server.run("stdio")
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    config = uvicorn.Config(server.streamable_http_app(), log_level="error")
    return asyncio.run(uvicorn.Server(config).serve([listener]))


if __name__ == "__main__":
    sys.exit(main())
