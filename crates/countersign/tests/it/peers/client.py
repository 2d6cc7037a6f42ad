"""A foreign MCP client for the tests, made with the Python SDK (package `mcp`).

It opens one session, performs the operations it reads on standard input in
order, and answers each with one line of JSON. It judges nothing: what a result
should be is known to the test that runs it.

    client.py [options] stdio -- COMMAND [ARG...]
    client.py [options] http URL [TOKEN]

Standard input holds operations, or arrays of them, one JSON text after the
other. Each text is performed when the line that completes it arrives, so a test
can act between two operations. The session ends with the input.

    {"op": "initialize"}
    {"op": "list_tools"}                      also list_prompts, list_resources,
                                              list_resource_templates; "cursor" is optional
    {"op": "call", "name": N, "arguments": {}}
    {"op": "progress_call", "name": N, "arguments": {}}
    {"op": "get_prompt", "name": N, "arguments": {}}
    {"op": "read_resource", "uri": U}
    {"op": "request", "method": M, "params": {}}
    {"op": "wait_notification", "method": M}  also one that came before and was not yet waited for

Each line has either "result", the result as it stood on the wire with every
member, or "error" with code and message. Next to it there may be:

    "progress"      what notifications/progress carried (progress_call)
    "requests"      what the server asked of this client since the line before: method, params
    "status"        the HTTP status of a refused request
    "client_error"  what the SDK itself disliked about the answer

Exit status: 0 when all operations were performed, whatever they returned; 1 when
the session could not be opened (one line with "error" says why); 2 for bad usage.
"""

import argparse
import asyncio
import json
import os
import sys
import threading
import warnings
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx2
import mcp_types as types
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter

LISTS = {
    "list_tools": "tools/list",
    "list_prompts": "prompts/list",
    "list_resources": "resources/list",
    "list_resource_templates": "resources/templates/list",
}


class BadUsage(Exception):
    """The operations make no sense; the test is at fault."""


class Wire:
    """What passed between client and server, before the SDK's types drop members."""

    def __init__(self, trace: bool) -> None:
        self.trace = trace
        self.method_of: dict = {}
        self.answers: dict[str, dict] = {}
        self.progress: list = []
        self.requests: list = []
        self.status: int | None = None
        self.notifications: list = []
        self.notified = anyio.Event()
        self.opened: dict = {}

    def begin(self) -> None:
        self.answers.clear()
        self.progress.clear()
        self.status = None

    def sent(self, message) -> None:
        self.note("->", dump(message))
        if isinstance(message, types.JSONRPCRequest):
            self.method_of[message.id] = message.method

    def received(self, message) -> None:
        self.note("<-", dump(message))
        if isinstance(message, types.JSONRPCResponse):
            self.answered(message.id, {"result": dict(message.result)})
        elif isinstance(message, types.JSONRPCError):
            self.answered(message.id, {"error": dump(message.error)})
        elif isinstance(message, types.JSONRPCRequest):
            self.requests.append({"method": message.method, "params": message.params})
        elif message.method == "notifications/progress":
            self.progress.append(message.params)
        else:
            self.notifications.append({"method": message.method, "params": message.params})
            self.notified.set()
            self.notified = anyio.Event()

    def answered(self, request_id, answer: dict) -> None:
        self.answers[self.method_of.get(request_id, "")] = answer

    async def http_request(self, request) -> None:
        self.note("->", f"{request.method} {dict(request.headers)}")

    async def http_response(self, response) -> None:
        self.note("<-", f"{response.status_code} {dict(response.headers)}")
        if response.status_code >= 400 and response.request.method == "POST":
            self.status = response.status_code

    def note(self, direction: str, what) -> None:
        if self.trace:
            text = what if isinstance(what, str) else json.dumps(what)
            print(direction, text, file=sys.stderr, flush=True)


class Tapped:
    """One end of a transport, seen by `on_message` in passing."""

    def __init__(self, stream, on_message) -> None:
        self.stream = stream
        self.on_message = on_message

    @property
    def last_context(self):
        return getattr(self.stream, "last_context", None)

    async def send(self, item) -> None:
        self.on_message(item.message)
        await self.stream.send(item)

    async def receive(self):
        item = await self.stream.receive()
        if not isinstance(item, Exception):
            self.on_message(item.message)
        return item

    def __aiter__(self):
        return self

    async def __anext__(self):
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        await self.stream.aclose()

    async def __aenter__(self):
        return self

    async def __aexit__(self, *exc):
        await self.aclose()


@asynccontextmanager
async def transport(options, wire: Wire):
    if options.transport == "stdio":
        command, *arguments = options.command
        server = StdioServerParameters(command=command, args=arguments, env=dict(os.environ))
        inner = stdio_client(server)
        http = None
    else:
        headers = {"Authorization": f"Bearer {options.token}"} if options.token else {}
        http = httpx2.AsyncClient(
            headers=headers,
            timeout=options.timeout,
            trust_env=False,  # a proxy of the machine has no part in this
            event_hooks={"request": [wire.http_request], "response": [wire.http_response]},
        )
        inner = streamable_http_client(options.url, http_client=http)
    try:
        async with inner as (read, write):
            yield Tapped(read, wire.received), Tapped(write, wire.sent)
    finally:
        if http is not None:
            await http.aclose()


def client_for(options, wire: Wire) -> Client:
    async def sample(_context, _params):
        text = types.TextContent(type="text", text=options.sampling)
        return types.CreateMessageResult(role="assistant", content=text, model="test-model", stop_reason="endTurn")

    async def elicit(_context, _params):
        return types.ElicitResult.model_validate(options.elicit)

    async def roots(_context):
        return types.ListRootsResult(roots=[types.Root(uri=root_uri(root)) for root in options.roots])

    return Client(
        transport(options, wire),
        mode="legacy" if options.handshake else "auto",
        read_timeout_seconds=options.timeout,
        cache=None,
        client_info=types.Implementation(name=options.name, version="1.0.0"),
        sampling_callback=sample if options.sampling is not None else None,
        elicitation_callback=elicit if options.elicit is not None else None,
        list_roots_callback=roots if options.roots is not None else None,
    )


async def perform(client: Client, wire: Wire, step: dict, timeout: float) -> dict:
    """The answer to one operation."""
    op = step["op"]
    if op == "initialize":
        return wire.opened
    if op == "wait_notification":
        return await notification(wire, step["method"], timeout)
    wire.begin()
    answer: dict = {}
    method = LISTS.get(op) or step.get("method")
    try:
        if op in LISTS:
            await getattr(client, op)(cursor=step.get("cursor"))
        elif op == "call":
            method = "tools/call"
            await client.call_tool(step["name"], step.get("arguments"))
        elif op == "progress_call":
            method = "tools/call"
            await client.call_tool(step["name"], step.get("arguments"), progress_callback=ignore_progress)
            answer["progress"] = list(wire.progress)
        elif op == "get_prompt":
            method = "prompts/get"
            await client.get_prompt(step["name"], step.get("arguments"))
        elif op == "read_resource":
            method = "resources/read"
            await client.read_resource(step["uri"])
        elif op == "request":
            request = types.Request[dict | None, str](method=method, params=step.get("params"))
            await client.session.send_request(request, TypeAdapter(dict))
        else:
            raise BadUsage(f"unknown op {op!r}")
    except BadUsage:
        raise
    except MCPError as error:
        answer["error"] = dump(error.error)
    except Exception as error:  # the SDK's own validation raises several kinds
        answer["client_error"] = f"{type(error).__name__}: {error}"
    answer.update(wire.answers.get(method, {}))
    if wire.requests:
        answer["requests"] = list(wire.requests)
        wire.requests.clear()
    if wire.status is not None:
        answer["status"] = wire.status
    return answer


async def ignore_progress(_progress, _total, _message) -> None:
    """Asking for progress makes the SDK send a token; the wire keeps what comes."""


async def notification(wire: Wire, method: str, timeout: float) -> dict:
    with anyio.move_on_after(timeout):
        while True:
            for index, seen in enumerate(wire.notifications):
                if seen["method"] == method:
                    return {"result": wire.notifications.pop(index)}
            await wire.notified.wait()
    return {"error": {"code": None, "message": f"no {method} within {timeout} s"}}


async def steps():
    """Operations from standard input, each as soon as its text is complete."""
    lines: asyncio.Queue = asyncio.Queue()
    loop = asyncio.get_running_loop()

    # A daemon thread, so that a line that never comes cannot keep the process.
    def read() -> None:
        for line in sys.stdin:
            loop.call_soon_threadsafe(lines.put_nowait, line)
        loop.call_soon_threadsafe(lines.put_nowait, None)

    threading.Thread(target=read, daemon=True).start()
    text = ""
    while (line := await lines.get()) is not None:
        text += line
        try:
            found = json.loads(text)
        except json.JSONDecodeError:
            continue
        text = ""
        for step in found if isinstance(found, list) else [found]:
            yield step
    if text.strip():
        raise BadUsage("standard input ends inside a JSON text")


async def run(options) -> int:
    wire = Wire(options.trace)
    client = client_for(options, wire)
    try:
        await client.__aenter__()
    except Exception as error:
        say(refusal(innermost(error), wire))
        return 1
    try:
        handshake = "initialize" if "initialize" in wire.answers else "server/discover"
        wire.opened = {
            **wire.answers[handshake],
            "handshake": handshake,
            "protocol_version": client.protocol_version,
        }
        async for step in steps():
            say(await perform(client, wire, step, options.timeout))
    except BadUsage as error:
        print(f"client.py: {error}", file=sys.stderr)
        return 2
    finally:
        await client.__aexit__(None, None, None)
    return 0


def refusal(error: BaseException, wire: Wire) -> dict:
    if isinstance(error, MCPError):
        answer = {"error": dump(error.error)}
    else:
        answer = {"error": {"code": None, "message": f"{type(error).__name__}: {error}"}}
    if wire.status is not None:
        answer["status"] = wire.status
    return answer


def innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def dump(model) -> dict:
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


def say(answer: dict) -> None:
    print(json.dumps(answer, ensure_ascii=False), flush=True)


def root_uri(root: str) -> str:
    return root if "://" in root else Path(root).absolute().as_uri()


def parse(arguments: list[str]):
    parser = argparse.ArgumentParser(prog="client.py")
    parser.add_argument("--handshake", action="store_true", help="send initialize at once, without server/discover")
    parser.add_argument("--sampling", metavar="TEXT", help="answer sampling requests with this text")
    parser.add_argument("--elicit", metavar="JSON", type=json.loads, help='such as {"action":"accept","content":{}}')
    parser.add_argument("--roots", metavar="A,B", type=lambda text: [root for root in text.split(",") if root])
    parser.add_argument("--name", default="foreign-client", help="the name in clientInfo")
    parser.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS", help="for each request and wait")
    parser.add_argument("--trace", action="store_true", help="write all messages to standard error")
    kinds = parser.add_subparsers(dest="transport", required=True)
    kinds.add_parser("stdio").add_argument("command", nargs="+")
    http = kinds.add_parser("http")
    http.add_argument("url")
    http.add_argument("token", nargs="?")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    # Sampling, roots and the like are deprecated in the newest revision, and in use.
    warnings.simplefilter("ignore")
    sys.exit(anyio.run(run, parse(sys.argv[1:])))
