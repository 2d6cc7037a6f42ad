"""A server made with FastMCP that uses every feature of the protocol which FastMCP has."""

from fastmcp import Context, FastMCP
from mcp_types import SamplingMessage, TextContent, ToolAnnotations

server = FastMCP("features", instructions="Has one of everything.")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool
def locked() -> str:
    """Is switched off by the operator."""
    return "never"


@server.tool
async def progress(ctx: Context) -> str:
    """Reports progress and logs."""
    await ctx.report_progress(1, 2, "half")
    await ctx.info("half done")
    await ctx.report_progress(2, 2, "whole")
    return "done"


@server.tool
async def roots(ctx: Context) -> str:
    """Asks for the client's roots."""
    answer = await ctx.session.list_roots()
    return ",".join(str(root.uri) for root in answer.roots)


@server.tool
async def sample(ctx: Context) -> str:
    """Asks the client's model."""
    asked = SamplingMessage(role="user", content=TextContent(type="text", text="Say hi"))
    answer = await ctx.session.create_message([asked], max_tokens=10)
    return answer.content.text


@server.tool
async def elicit(ctx: Context) -> str:
    """Asks the client's user."""
    answer = await ctx.elicit("Your name?", response_type=str)
    return f"{answer.action} {getattr(answer, 'data', None)}"


@server.resource("memo://one")
def one() -> str:
    """A resource."""
    return "the first memo"


@server.resource("memo://{name}/text")
def named(name: str) -> str:
    """A resource template."""
    return f"the memo {name}"


@server.prompt
def greet(name: str) -> str:
    """A prompt."""
    return f"Greet {name}."


server.run(show_banner=False)
