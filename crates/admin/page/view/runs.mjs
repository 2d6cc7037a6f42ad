// Runs of workflows, each as a waterfall: steps, what their agents wrote and called, on one time axis.
import { useEffect } from '../vendor/hooks.mjs';
import { path, query } from '../api.mjs';
import { change, link, place } from '../place.mjs';
import { Ago, Block, Copy, Empty, Fault, html, Loading, Shown, State, Target, useAnswer, useTitle, When } from '../part/shown.mjs';
import { Choice, Search } from '../part/filters.mjs';
import { isNarrow, List } from '../part/list.mjs';
import { isShell } from '../part/change.mjs';
import { lasted as lasting, ShellCommand } from '../part/record-row.mjs';
import { axis, bar, events, ticks } from '../part/waterfall.mjs';
import { count, now, plural, shortId, took } from '../format.mjs';

const LOOK_EVERY_MS = 2_000; // at a run that goes on
const CAUSE_LINES = 8; // of the stderr of the step that failed

const STATUSES = ['running', 'success', 'failure', 'cancelled', 'interrupted'];

export function Runs() {
  const { values } = place.value;
  useTitle('Runs');
  return values.run ? html`<${One} key=${values.run} id=${values.run} />` : html`<${All} />`;
}

const COLUMNS = [
  { name: 'Started', width: '96px', class: 'when', cell: (run) => html`<${Ago} time=${run.started_at} short=${isNarrow()} />` },
  { name: 'Status', width: '130px', class: 'status', cell: (run) => html`<${State} word=${run.status} />` },
  { name: 'Workflow', class: 'tool', cell: (run) => html`<span class="two-lines"><span class="strong"><${Shown} text=${run.workflow} max=${100} /></span><span class="second faint">${took(lasted(run))}</span></span>` },
  { name: 'Message', class: 'wide', cell: (run) => html`<span class="faint"><${Shown} text=${run.message ?? ''} max=${160} /></span>` },
  { name: 'Steps', width: '76px', class: 'right wide', cell: (run) => count(run.steps_total) },
  { name: 'Tokens', width: '90px', class: 'right wide', cell: (run) => (run.tokens === null ? '–' : count(run.tokens)) },
  { name: 'Cost', width: '90px', class: 'right wide', cell: (run) => cost(run.cost_usd) },
  { name: 'Duration', width: '110px', class: 'right wide', cell: (run) => took(lasted(run)) },
];

// To its end, or so far.
const lasted = (run) => run.duration_ms ?? (run.status === 'running' ? now.value - Date.parse(run.started_at) : null);

const cost = (usd) => (usd === null || usd === undefined ? '–' : `$${usd.toFixed(2)}`);

function All() {
  const { values } = place.value;
  const { answer, error } = useAnswer('/runs' + query({ status: values.status, workflow: values.workflow, limit: 100 }), ['run']);
  const runs = answer?.runs ?? [];
  const isNarrowed = values.status || values.workflow;
  return html`
    <div class="head"><h1>Runs</h1></div>
    <div class="filters"><${Search} name="workflow" label="Workflow" hint="exact name" isFirst /><${Choice} name="status" label="Status" options=${STATUSES} /></div>
    <${Fault} error=${error} />
    <p class="counted" role="status">${answer && plural(answer.total, 'run')}${answer?.next_cursor && html`, showing the newest ${count(runs.length)}`}</p>
    ${!answer && !error && html`<${Loading} />`}
    ${answer && runs.length === 0 && html`<${Empty} title=${isNarrowed ? 'No matching runs' : 'No workflow runs yet'} command=${isNarrowed ? undefined : 'countersign run flow.yaml'}>
      <p>${isNarrowed ? 'Change the filters.' : 'A workflow runs agents and commands step by step, with the gate as the only source of tools:'}</p><//>`}
    ${runs.length > 0 && html`<${List} label="Runs, newest first" columns=${COLUMNS} count=${runs.length} rowAt=${(index) => runs[index]}
      idOf=${(run) => run.id} onOpen=${(run) => change({ run: run.id })} />`}`;
}

function One({ id }) {
  const { answer: run, error, look } = useAnswer('/runs' + path(id), ['run', 'activity']);
  // Texts of agents are not told of by events.
  const isRunning = run?.status === 'running';
  useEffect(() => {
    const timer = isRunning && setInterval(look, LOOK_EVERY_MS);
    return () => clearInterval(timer);
  }, [isRunning]);
  return html`
    <div class="head"><h1><a href=${link('runs')}>Runs</a> <span class="faint">/</span> ${run ? html`<${Shown} text=${run.workflow} />` : shortId(id)}</h1></div>
    <${Fault} error=${error} />
    ${!run && !error && html`<${Loading} />`}
    ${run && html`<${Facts} run=${run} />
      <${Waterfall} run=${run} />`}`;
}

function Facts({ run }) {
  return html`<section class="card">
    <p class="verdict"><${State} word=${run.status} /> <${Shown} text=${run.message ?? ''} max=${1000} /></p>
    <${Cause} run=${run} />
    <ul class="figures">
      <li><span class="figure">${took(lasted(run))}</span><span>${run.status === 'running' ? 'so far' : 'duration'}</span></li>
      <li><span class="figure">${count(run.steps_total)}</span><span>${run.steps_total === 1 ? 'step' : 'steps'}</span></li>
      <li><span class="figure">${run.tokens === null ? '–' : count(run.tokens)}</span><span>tokens</span></li>
      <li><span class="figure">${cost(run.cost_usd)}</span><span>cost</span></li>
    </ul>
    <dl class="facts">
      <dt>Started</dt><dd><${When} time=${run.started_at} /></dd>
      <dt>File</dt><dd><code><${Shown} text=${run.file ?? '–'} max=${400} /></code></dd>
      ${run.resumed_from && html`<dt>Goes on from</dt><dd><a href=${link('runs', { run: run.resumed_from })}><code>${run.resumed_from}</code></a></dd>`}
      ${run.trace_id && html`<dt>Trace</dt><dd><code>${run.trace_id}</code> <${Copy} text=${run.trace_id} what="the trace id" isSmall /></dd>`}
      <dt>Run</dt><dd><code>${run.id}</code> <${Copy} text=${run.id} what="the id" isSmall /></dd>
      <dt>Signed</dt><dd>No: only the calls of its steps have receipts</dd>
    </dl>
  </section>`;
}

// Why a run failed, in the words of the step that did.
function Cause({ run }) {
  const failed = run.status === 'failure' ? run.steps.filter((step) => ['failure', 'timed_out'].includes(step.status)).at(-1) : null;
  const last = failed?.stderr?.trimEnd().split('\n').slice(-CAUSE_LINES).join('\n');
  if (!last) return null;
  return html`<div class="cause"><p class="faint">Step <${Shown} text=${failed.state} max=${60} /> said last:</p><${Block} text=${last} label="Why it failed" /></div>`;
}

function Waterfall({ run }) {
  const time = axis(run, run.status === 'running' ? now.value : 0);
  if (!run.steps.length) return html`<p class="faint">No step has started.</p>`;
  return html`<section class="waterfall" aria-label="Steps">
    <div class="fall-row fall-head"><h2>Steps</h2>
      <div class="track" aria-hidden="true">${ticks(time).map((at) => html`<span class="tick" style=${{ left: `${(at / (time.to - time.from)) * 100}%` }}>${took(at)}</span>`)}</div>
      <span></span></div>
    <ol class="steps">${run.steps.map((step) => html`<${Step} key=${step.number} step=${step} run=${run} time=${time} />`)}</ol></section>`;
}

function Step({ step, run, time }) {
  const facts = [step.kind, step.provider, step.model, step.isolation && `isolation ${step.isolation}`, step.attempt > 1 && `attempt ${step.attempt}`,
    step.root && step.root !== step.state && `in ${step.root}`, step.exit_code !== null && `exit code ${step.exit_code}`].filter(Boolean).join(' · ');
  const end = step.ended_at ? Date.parse(step.ended_at) : step.status === 'running' ? time.to : Date.parse(step.started_at);
  const spent = [step.tokens !== null && plural(step.tokens, 'token'), step.cost_usd !== null && cost(step.cost_usd)].filter(Boolean).join(', ');
  return html`<li class="card step">
    <div class="fall-row">
      <h3>${step.number}. <${Shown} text=${step.state} max=${80} /> <${State} word=${step.status} /></h3>
      <${Track} time=${time} start=${Date.parse(step.started_at)} end=${end} tone=${step.status} />
      <span class="right">${took(step.duration_ms ?? (run.status === 'running' && step.status === 'running' ? end - Date.parse(step.started_at) : null))}</span>
    </div>
    <p class="faint step-facts">${facts}${spent && html` · ${spent}`}</p>
    ${step.error_code && html`<p class="notice bad"><strong>${step.error_code}</strong> <${Shown} text=${step.error_message} max=${2000} /></p>`}
    <ul class="fall">${events(step).map((event, at) => html`<${Event} key=${event.call?.id ?? `text ${at}`} event=${event} time=${time} />`)}</ul>
    ${step.calls_total > step.calls.length && html`<p class="faint">${plural(step.calls_total, 'call')}, showing the newest ${count(step.calls.length)}.
      <a href=${link('activity', { session_id: step.sessions[0] })}>Show all</a></p>`}
    ${step.stderr && html`<details open=${step.status !== 'success'}><summary>Stderr</summary><${Block} text=${step.stderr} label="Stderr" /></details>`}
    ${step.output && html`<details><summary>Output</summary><${Block} text=${step.output} label="Output" /></details>`}
  </li>`;
}

// A call leads to its record; a text of the agent opens.
function Event({ event, time }) {
  const { call, text } = event;
  if (call) {
    return html`<li class="fall-row"><span class="fall-name"><a href=${link('activity', { open: call.id })}><${Shown} text=${`${call.server_name}:${call.tool_name}`} max=${60} /></a>
        <span class="faint fall-target">${call.error_code ? html`<span class="bad-text">${call.error_code}</span>` : isShell(call.tool_name) ? html`<${ShellCommand} id=${call.id} />` : html`<${Target} text=${call.target?.resource ?? ''} />`}</span></span>
      <${Track} time=${time} start=${event.at} end=${event.end} tone=${`call ${call.status}`} />
      <span class="right faint">${lasting(call)}</span></li>`;
  }
  return html`<li class="fall-text"><details><summary class="fall-row"><span class=${'fall-name' + (event.kind === 'error' ? ' bad-text' : '')}><${Shown} text=${text.split('\n')[0]} max=${160} /></span>
      <${Track} time=${time} start=${event.at} end=${event.at} tone=${event.kind} /><span class="right faint">${event.kind === 'error' ? 'error' : 'text'}</span></summary>
    <${Block} text=${text} label="Text of the agent" /></details></li>`;
}

function Track({ time, start, end, tone }) {
  const { left, width } = bar(time, start, end);
  return html`<div class="track" aria-hidden="true"><span class=${`span ${tone}`} style=${{ left: `${left}%`, width: `${width}%` }}></span></div>`;
}
