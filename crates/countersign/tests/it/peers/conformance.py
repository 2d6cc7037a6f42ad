"""A server with everything that the official conformance suite asks for, on the Python SDK (package
`mcp`). It prints its address."""

import asyncio
import json
import re
import socket
import sys

import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

# One red pixel, and a WAV file without samples.
PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="


def text(words):
    return {"type": "text", "text": words}


def embedded(uri, mime_type, words):
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": words}}


IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": WAV, "mimeType": "audio/wav"}
MIXED = embedded("test://mixed-content-resource", "application/json", '{"value":123}')

PLAIN = {
    "test_simple_text": [text("This is a simple text response for testing.")],
    "test_image_content": [IMAGE],
    "test_audio_content": [AUDIO],
    "test_embedded_resource": [embedded("test://embedded-resource", "text/plain", "Embedded.")],
    "test_multiple_content_types": [text("Multiple content types test:"), IMAGE, MIXED],
}


async def log(ctx, _given):
    for words in ["started", "processing data", "completed"]:
        await ctx.session.send_log_message("info", f"Tool {words}", "fixture", ctx.request_id)
        await asyncio.sleep(0.02)
    return [text("The tool has logged.")]


async def progress(ctx, _given):
    for done in [0, 50, 100]:
        await ctx.session.report_progress(done, 100)
        await asyncio.sleep(0.02)
    return [text("The tool has reported progress.")]


async def sample(ctx, given):
    content = types.TextContent(type="text", text=given["prompt"])
    messages = [types.SamplingMessage(role="user", content=content)]
    answer = await ctx.session.create_message(
        messages, max_tokens=100, related_request_id=ctx.request_id
    )
    return [text(f"LLM response: {answer.content.text}")]


async def elicit(ctx, message, properties, required=None):
    schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    answer = await ctx.session.elicit_form(message, schema, ctx.request_id)
    return f"action={answer.action}, content={json.dumps(answer.content or {})}"


async def ask(ctx, given):
    fields = {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's address"},
    }
    answer = await elicit(ctx, given["message"], fields, ["username", "email"])
    return [text(f"User response: {answer}")]


async def defaults(ctx, _given):
    fields = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    return [text(f"Elicitation completed: {await elicit(ctx, 'Please check', fields)}")]


async def enums(ctx, _given):
    plain, titles = ["option1", "option2", "option3"], ["First", "Second", "Third"]
    titled = [{"const": f"value{n + 1}", "title": title} for n, title in enumerate(titles)]
    fields = {
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": titles},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }
    return [text(f"Elicitation completed: {await elicit(ctx, 'Please choose', fields)}")]


ACTIVE = {
    "test_tool_with_logging": (log, None),
    "test_tool_with_progress": (progress, None),
    "test_sampling": (sample, "prompt"),
    "test_elicitation": (ask, "message"),
    "test_elicitation_sep1034_defaults": (defaults, None),
    "test_elicitation_sep1330_enums": (enums, None),
}


def tool(name, argument):
    properties = {argument: {"type": "string"}} if argument else {}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "description": f"The tool {name}", "inputSchema": schema}


async def list_tools(_ctx, _params):
    names = [*PLAIN, "test_error_handling"]
    active = [tool(name, argument) for name, (_, argument) in ACTIVE.items()]
    return {"tools": [tool(name, None) for name in names] + active}


async def call_tool(ctx, params):
    if params.name in PLAIN:
        return {"content": PLAIN[params.name]}
    if params.name == "test_error_handling":
        return {"content": [text("This tool always fails")], "isError": True}
    if params.name not in ACTIVE:
        raise MCPError(-32602, f"Unknown tool: {params.name}")
    return {"content": await ACTIVE[params.name][0](ctx, params.arguments or {})}


def messages(*contents):
    return {"messages": [{"role": "user", "content": content} for content in contents]}


PROMPTS = {
    "test_simple_prompt": (
        [],
        lambda given: messages(text("This is a simple prompt for testing.")),
    ),
    "test_prompt_with_arguments": (
        ["arg1", "arg2"],
        lambda given: messages(text(f"arg1='{given['arg1']}', arg2='{given['arg2']}'")),
    ),
    "test_prompt_with_embedded_resource": (
        ["resourceUri"],
        lambda given: messages(
            embedded(given["resourceUri"], "text/plain", "Embedded for testing."),
            text("Please process the embedded resource above."),
        ),
    ),
    "test_prompt_with_image": (
        [],
        lambda given: messages(IMAGE, text("Please analyze the image above.")),
    ),
}


async def list_prompts(_ctx, _params):
    def prompt(name, names):
        arguments = [{"name": one, "description": one, "required": True} for one in names]
        return {"name": name, "description": f"The prompt {name}", "arguments": arguments}

    return {"prompts": [prompt(name, names) for name, (names, _) in PROMPTS.items()]}


async def get_prompt(_ctx, params):
    if params.name not in PROMPTS:
        raise MCPError(-32602, f"Unknown prompt: {params.name}")
    return PROMPTS[params.name][1](params.arguments or {})


RESOURCES = {
    "test://static-text": {"mimeType": "text/plain", "text": "A static text."},
    "test://static-binary": {"mimeType": "image/png", "blob": PNG},
    "test://watched-resource": {"mimeType": "text/plain", "text": "A text that may change."},
}


async def list_resources(_ctx, _params):
    def resource(uri, mime_type):
        name = uri.removeprefix("test://")
        return {"uri": uri, "name": name, "description": f"The {name}", "mimeType": mime_type}

    return {"resources": [resource(uri, of["mimeType"]) for uri, of in RESOURCES.items()]}


async def list_templates(_ctx, _params):
    template = {
        "uriTemplate": "test://template/{id}/data",
        "name": "template",
        "description": "A resource by its id",
        "mimeType": "application/json",
    }
    return {"resourceTemplates": [template]}


async def read_resource(_ctx, params):
    uri = str(params.uri)
    if found := re.fullmatch(r"test://template/([^/]+)/data", uri):
        data = {"id": found[1], "templateTest": True, "data": f"Data for ID: {found[1]}"}
        content = {"uri": uri, "mimeType": "application/json", "text": json.dumps(data)}
    elif uri in RESOURCES:
        content = {"uri": uri, **RESOURCES[uri]}
    else:
        raise MCPError(-32002, f"Resource not found: {uri}", {"uri": uri})
    return {"contents": [content]}


async def complete(_ctx, params):
    values = [word for word in ["paris", "park"] if word.startswith(params.argument.value)]
    return {"completion": {"values": values, "total": len(values), "hasMore": False}}


async def nothing(_ctx, _params):
    return {}


def main():
    server = Server(
        "conformance-fixture",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=nothing,
        on_unsubscribe_resource=nothing,
        on_completion=complete,
        on_set_logging_level=nothing,
    )
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    config = uvicorn.Config(server.streamable_http_app(), log_level="error")
    asyncio.run(uvicorn.Server(config).serve([listener]))


if __name__ == "__main__":
    sys.exit(main())
