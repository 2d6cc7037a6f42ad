// A server with everything that the official conformance suite asks for, on the TypeScript SDK. Its one
// argument is the folder of the installed packages. It prints its address.

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { setTimeout as pause } from 'node:timers/promises';

const require = createRequire(`${process.argv[2]}/package.json`);
const { ProtocolError, Server } = require('@modelcontextprotocol/server');
const { NodeStreamableHTTPServerTransport, localhostHostValidation } =
    require('@modelcontextprotocol/node');

// One red pixel, and a WAV file without samples.
const PNG =
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';
const WAV = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=';

const text = words => ({ type: 'text', text: words });
const image = () => ({ type: 'image', data: PNG, mimeType: 'image/png' });
const embedded = (uri, mimeType, words) =>
    ({ type: 'resource', resource: { uri, mimeType, text: words } });
const said = (...content) => ({ content });
const ended = answer =>
    `action=${answer.action}, content=${JSON.stringify(answer.content ?? {})}`;

const nothing = { type: 'object', properties: {} };
const oneText = name =>
    ({ type: 'object', properties: { [name]: { type: 'string' } }, required: [name] });
const choices = (first, ...names) =>
    names.map((title, index) => ({ const: `${first}${index + 1}`, title }));

const form = (message, properties, required) => ({
    method: 'elicitation/create',
    params: { message, requestedSchema: { type: 'object', properties, required } }
});

const TOOLS = {
    test_simple_text: {
        call: () => said(text('This is a simple text response for testing.'))
    },
    test_image_content: { call: () => said(image()) },
    test_audio_content: {
        call: () => said({ type: 'audio', data: WAV, mimeType: 'audio/wav' })
    },
    test_embedded_resource: {
        call: () =>
            said(embedded('test://embedded-resource', 'text/plain', 'An embedded resource.'))
    },
    test_multiple_content_types: {
        call: () =>
            said(
                text('Multiple content types test:'),
                image(),
                embedded('test://mixed-content-resource', 'application/json', '{"value":123}')
            )
    },
    test_tool_with_logging: {
        call: async (_, ctx) => {
            for (const data of ['started', 'processing data', 'completed']) {
                const params = { level: 'info', logger: 'fixture', data: `Tool ${data}` };
                await ctx.mcpReq.notify({ method: 'notifications/message', params });
                await pause(20);
            }
            return said(text('The tool has logged.'));
        }
    },
    test_error_handling: {
        call: () => ({ ...said(text('This tool always fails')), isError: true })
    },
    test_tool_with_progress: {
        call: async (_, ctx) => {
            const progressToken = ctx.mcpReq._meta?.progressToken;
            for (const progress of [0, 50, 100]) {
                if (progressToken !== undefined) {
                    const params = { progressToken, progress, total: 100 };
                    await ctx.mcpReq.notify({ method: 'notifications/progress', params });
                }
                await pause(20);
            }
            return said(text('The tool has reported progress.'));
        }
    },
    test_sampling: {
        inputSchema: oneText('prompt'),
        call: async ({ prompt }, ctx) => {
            const messages = [{ role: 'user', content: text(prompt) }];
            const params = { messages, maxTokens: 100 };
            const answer = await ctx.mcpReq.send({ method: 'sampling/createMessage', params });
            return said(text(`LLM response: ${answer.content.text}`));
        }
    },
    test_elicitation: {
        inputSchema: oneText('message'),
        call: async ({ message }, ctx) => {
            const field = description => ({ type: 'string', description });
            const fields = { username: field("User's response"), email: field("User's address") };
            const asked = form(message, fields, ['username', 'email']);
            return said(text(`User response: ${ended(await ctx.mcpReq.send(asked))}`));
        }
    },
    test_elicitation_sep1034_defaults: {
        call: async (_, ctx) => {
            const states = ['active', 'inactive', 'pending'];
            const asked = form('Please check the defaults', {
                name: { type: 'string', default: 'John Doe' },
                age: { type: 'integer', default: 30 },
                score: { type: 'number', default: 95.5 },
                status: { type: 'string', enum: states, default: 'active' },
                verified: { type: 'boolean', default: true }
            });
            return said(text(`Elicitation completed: ${ended(await ctx.mcpReq.send(asked))}`));
        }
    },
    test_elicitation_sep1330_enums: {
        call: async (_, ctx) => {
            const plain = ['option1', 'option2', 'option3'];
            const titles = ['First', 'Second', 'Third'];
            const asked = form('Please choose', {
                untitledSingle: { type: 'string', enum: plain },
                titledSingle: { type: 'string', oneOf: choices('value', ...titles) },
                legacyEnum: { type: 'string', enum: ['opt1', 'opt2', 'opt3'], enumNames: titles },
                untitledMulti: { type: 'array', items: { type: 'string', enum: plain } },
                titledMulti: { type: 'array', items: { anyOf: choices('value', ...titles) } }
            });
            return said(text(`Elicitation completed: ${ended(await ctx.mcpReq.send(asked))}`));
        }
    },
    json_schema_2020_12_tool: {
        inputSchema: {
            $schema: 'https://json-schema.org/draft/2020-12/schema',
            type: 'object',
            $defs: {
                address: {
                    $anchor: 'addressDef',
                    type: 'object',
                    properties: { street: { type: 'string' }, city: { type: 'string' } }
                }
            },
            properties: {
                name: { type: 'string' },
                address: { $ref: '#/$defs/address' },
                contactMethod: { type: 'string', enum: ['phone', 'email'] },
                phone: { type: 'string' },
                email: { type: 'string' }
            },
            allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
            if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
            then: { required: ['phone'] },
            else: { required: ['email'] },
            additionalProperties: false
        },
        call: given => said(text(JSON.stringify(given)))
    }
};

const message = content => ({ role: 'user', content });
const argument = name => ({ name, description: `The argument ${name}`, required: true });

const PROMPTS = {
    test_simple_prompt: {
        get: () => [message(text('This is a simple prompt for testing.'))]
    },
    test_prompt_with_arguments: {
        arguments: [argument('arg1'), argument('arg2')],
        get: ({ arg1, arg2 }) => [
            message(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`))
        ]
    },
    test_prompt_with_embedded_resource: {
        arguments: [argument('resourceUri')],
        get: ({ resourceUri }) => [
            message(embedded(resourceUri, 'text/plain', 'Embedded for testing.')),
            message(text('Please process the embedded resource above.'))
        ]
    },
    test_prompt_with_image: {
        get: () => [message(image()), message(text('Please analyze the image above.'))]
    }
};

const RESOURCES = {
    'test://static-text': { mimeType: 'text/plain', text: 'A static text.' },
    'test://static-binary': { mimeType: 'image/png', blob: PNG },
    'test://watched-resource': { mimeType: 'text/plain', text: 'A text that may change.' }
};
const TEMPLATE = 'test://template/{id}/data';

function read(uri) {
    const [, id] = /^test:\/\/template\/([^/]+)\/data$/.exec(uri) ?? [];
    if (id !== undefined) {
        const data = { id, templateTest: true, data: `Data for ID: ${id}` };
        return { uri, mimeType: 'application/json', text: JSON.stringify(data) };
    }
    if (!(uri in RESOURCES)) {
        throw new ProtocolError(-32002, `Resource not found: ${uri}`, { uri });
    }
    return { uri, ...RESOURCES[uri] };
}

function known(kind, table, name) {
    if (!Object.hasOwn(table, name)) {
        throw new ProtocolError(-32602, `Unknown ${kind}: ${name}`);
    }
    return table[name];
}

function fixture() {
    const capabilities = {
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
        completions: {},
        logging: {}
    };
    const server = new Server({ name: 'conformance-fixture', version: '1' }, { capabilities });
    const on = (method, answer) => server.setRequestHandler(method, answer);
    on('tools/list', () => ({
        tools: Object.entries(TOOLS).map(([name, { inputSchema }]) => ({
            name,
            description: `The tool ${name}`,
            inputSchema: inputSchema ?? nothing
        }))
    }));
    on('tools/call', ({ params }, ctx) =>
        known('tool', TOOLS, params.name).call(params.arguments ?? {}, ctx)
    );
    on('prompts/list', () => ({
        prompts: Object.entries(PROMPTS).map(([name, prompt]) => ({
            name,
            description: `The prompt ${name}`,
            ...(prompt.arguments && { arguments: prompt.arguments })
        }))
    }));
    on('prompts/get', ({ params }) => ({
        messages: known('prompt', PROMPTS, params.name).get(params.arguments ?? {})
    }));
    on('resources/list', () => ({
        resources: Object.entries(RESOURCES).map(([uri, { mimeType }]) => ({
            uri,
            name: uri.slice('test://'.length),
            description: `The resource ${uri}`,
            mimeType
        }))
    }));
    on('resources/templates/list', () => ({
        resourceTemplates: [
            {
                uriTemplate: TEMPLATE,
                name: 'template',
                description: 'A resource by its id',
                mimeType: 'application/json'
            }
        ]
    }));
    on('resources/read', ({ params }) => ({ contents: [read(params.uri)] }));
    const subscribed = new Set();
    on('resources/subscribe', ({ params }) => (subscribed.add(params.uri), {}));
    on('resources/unsubscribe', ({ params }) => (subscribed.delete(params.uri), {}));
    on('completion/complete', ({ params }) => {
        const values = ['paris', 'park', 'party'];
        const fits = values.filter(value => value.startsWith(params.argument.value));
        return { completion: { values: fits, total: fits.length, hasMore: false } };
    });
    on('logging/setLevel', () => ({}));
    return server;
}

const sessions = new Map();
const isLocal = localhostHostValidation();

async function open() {
    const transport = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: id => sessions.set(id, transport)
    });
    transport.onclose = () => sessions.delete(transport.sessionId);
    await fixture().connect(transport);
    return transport;
}

const http = createServer(async (request, response) => {
    if (!isLocal(request, response)) {
        return;
    }
    const id = request.headers['mcp-session-id'];
    if (id !== undefined && !sessions.has(id)) {
        response.writeHead(404).end();
        return;
    }
    const transport = sessions.get(id) ?? (await open());
    await transport.handleRequest(request, response);
});
http.listen(0, '127.0.0.1', () => {
    console.log(`http://127.0.0.1:${http.address().port}/mcp`);
});
