// Runs of workflows, their steps, what each step called and how long it took.
import { path, query } from '../api.mjs';
import { change, link, place } from '../place.mjs';
import { Ago, Block, Empty, Fault, html, Shown, State, useAnswer, useTitle, When } from '../part/shown.mjs';
import { Choice, Search } from '../part/filters.mjs';
import { List } from '../part/list.mjs';
import { count, now, plural, shortId, took } from '../format.mjs';

const STATUSES = ['running', 'success', 'failure', 'cancelled', 'interrupted'];

export function Runs() {
  const { values } = place.value;
  useTitle('Runs');
  return values.run ? html`<${One} key=${values.run} id=${values.run} />` : html`<${All} />`;
}

const COLUMNS = [
  { name: 'Started', width: '96px', class: 'when', cell: (run) => html`<${Ago} time=${run.started_at} />` },
  { name: 'Status', width: '130px', class: 'status', cell: (run) => html`<${State} word=${run.status} />` },
  { name: 'Workflow', class: 'tool', cell: (run) => html`<span class="two-lines"><span class="strong"><${Shown} text=${run.workflow} max=${100} /></span><span class="second faint">${took(run.duration_ms)}</span></span>` },
  { name: 'Message', class: 'wide', cell: (run) => html`<span class="faint"><${Shown} text=${run.message ?? ''} max=${160} /></span>` },
  { name: 'Steps', width: '76px', class: 'right wide', cell: (run) => count(run.steps_total) },
  { name: 'Tokens', width: '90px', class: 'right wide', cell: (run) => (run.tokens === null ? '–' : count(run.tokens)) },
  { name: 'Cost', width: '90px', class: 'right wide', cell: (run) => cost(run.cost_usd) },
  { name: 'Duration', width: '110px', class: 'right wide', cell: (run) => took(run.duration_ms) },
];

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
    <p class="counted" role="status">${answer ? plural(answer.total, 'run') : 'Loading…'}${answer?.next_cursor && html`, showing the newest ${count(runs.length)}`}</p>
    ${answer && runs.length === 0 && html`<${Empty} title=${isNarrowed ? 'No matching runs' : 'No workflow runs yet'} command=${isNarrowed ? undefined : 'countersign run flow.yaml'}>
      <p>${isNarrowed ? 'Change the filters.' : 'A workflow runs agents and commands step by step, with the gate as the only source of tools:'}</p><//>`}
    ${runs.length > 0 && html`<${List} label="Runs, newest first" columns=${COLUMNS} count=${runs.length} rowAt=${(index) => runs[index]}
      idOf=${(run) => run.id} onOpen=${(run) => change({ run: run.id })} />`}`;
}

function One({ id }) {
  const { answer: run, error } = useAnswer('/runs' + path(id), ['run', 'activity']);
  return html`
    <div class="head"><h1><a href=${link('runs')}>Runs</a> <span class="faint">/</span> ${run ? html`<${Shown} text=${run.workflow} />` : shortId(id)}</h1></div>
    <${Fault} error=${error} />
    ${run && html`
      <section class="card">
        <p class="verdict"><${State} word=${run.status} /> <${Shown} text=${run.message ?? ''} max=${1000} /></p>
        <dl class="facts">
          <dt>Started</dt><dd><${When} time=${run.started_at} /></dd>
          <dt>Duration</dt><dd>${took(run.duration_ms)}</dd>
          <dt>File</dt><dd><code><${Shown} text=${run.file ?? '–'} max=${400} /></code></dd>
          <dt>Tokens, cost</dt><dd>${run.tokens === null ? '–' : count(run.tokens)}, ${cost(run.cost_usd)}</dd>
          ${run.resumed_from && html`<dt>Goes on from</dt><dd><a href=${link('runs', { run: run.resumed_from })}><code>${run.resumed_from}</code></a></dd>`}
          <dt>Trace</dt><dd><code>${run.trace_id ?? '–'}</code></dd>
          <dt>Run</dt><dd><code>${run.id}</code></dd>
        </dl>
      </section>
      <h2>Steps <span class="faint">${count(run.steps_total)}</span></h2>
      ${run.steps.length === 0 && html`<p class="faint">No step has started.</p>`}
      <ol class="steps">${run.steps.map((step) => html`<${Step} key=${step.number} step=${step} run=${run} />`)}</ol>`}`;
}

function Step({ step, run }) {
  const facts = [step.kind, step.provider, step.model, step.isolation && `isolation ${step.isolation}`, step.attempt > 1 && `attempt ${step.attempt}`].filter(Boolean).join(' · ');
  return html`<li class="card step">
    <div class="card-head"><h3>${step.number}. <${Shown} text=${step.state} /> <${State} word=${step.status} /></h3>
      <span class="right">${took(step.duration_ms)}${step.tokens !== null && html`, ${plural(step.tokens, 'token')}`}${step.cost_usd !== null && html`, ${cost(step.cost_usd)}`}</span></div>
    <${Bar} step=${step} run=${run} />
    <p class="faint">${facts}${step.exit_code !== null && html` · exit code ${step.exit_code}`}</p>
    ${step.error_code && html`<p class="notice bad"><strong>${step.error_code}</strong> <${Shown} text=${step.error_message} max=${2000} /></p>`}
    ${step.calls.length > 0 && html`<table class="plain"><thead><tr><th scope="col">Call</th><th scope="col">Status</th><th scope="col" class="wide">Target</th><th scope="col" class="right">Duration</th></tr></thead>
      <tbody>${step.calls.map((call) => html`<tr key=${call.id}>
        <td class="name"><a href=${link('activity', { open: call.id })}><${Shown} text=${`${call.server_name}:${call.tool_name}`} max=${120} /></a></td>
        <td><${State} word=${call.status} /></td>
        <td class="wide"><${Shown} text=${call.target?.resource ?? call.error_code ?? ''} max=${120} /></td>
        <td class="right">${took(call.duration_ms)}</td></tr>`)}</tbody></table>`}
    ${step.calls_total > step.calls.length && html`<p class="faint">${plural(step.calls_total, 'call')}, showing the newest ${count(step.calls.length)}.</p>`}
    ${step.texts.length > 0 && html`<details><summary>What the agent wrote <span class="faint">${count(step.texts.length)}</span></summary>
      ${step.texts.map((text, index) => html`<div key=${index}><p class="faint"><${When} time=${text.timestamp} />${text.kind === 'error' && ' · error'}</p><${Block} text=${text.text} label="Text" /></div>`)}</details>`}
    ${step.output && html`<details><summary>Output</summary><${Block} text=${step.output} label="Output" /></details>`}
    ${step.stderr && html`<details open=${step.status !== 'success'}><summary>Stderr</summary><${Block} text=${step.stderr} label="Stderr" /></details>`}
  </li>`;
}

// When within the run the step was at work.
function Bar({ step, run }) {
  const begin = Date.parse(run.started_at);
  const end = run.ended_at ? Date.parse(run.ended_at) : Math.max(now.value, begin + 1);
  const from = Date.parse(step.started_at);
  const to = step.ended_at ? Date.parse(step.ended_at) : end;
  const part = (time) => Math.min(100, Math.max(0, ((time - begin) / Math.max(1, end - begin)) * 100));
  return html`<svg class="gantt" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
    <rect class="track" width="100" height="4" /><rect class=${'span ' + step.status} x=${part(from)} width=${Math.max(0.6, part(to) - part(from))} height="4" /></svg>`;
}
