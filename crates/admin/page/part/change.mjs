// Text that a call changed, as lines with marks. Knows the arguments of common tools for files; what
// it does not know has no difference to show.

// Beyond this many steps a comparison would block the page; then all lines count as replaced.
const STEPS_MAX = 2_000_000;
const AROUND = 3; // unchanged lines kept around a change

// `[{ mark, text }]` with the marks `same`, `removed`, `added`, and `skipped` with its `lines`.
export function compared(before, after) {
  const [old, now] = [linesOf(before), linesOf(after)];
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start += 1;
  let end = 0;
  while (end < old.length - start && end < now.length - start && old.at(-1 - end) === now.at(-1 - end)) end += 1;
  const same = (lines) => lines.map((text) => ({ mark: 'same', text }));
  return folded([
    ...same(old.slice(0, start)),
    ...middle(old.slice(start, old.length - end), now.slice(start, now.length - end)),
    ...same(old.slice(old.length - end)),
  ]);
}

// A last line feed ends a line and begins none.
function linesOf(text) {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines;
}

const marked = (mark) => (text) => ({ mark, text });

// The longest common subsequence; removed lines stand before added ones.
function middle(old, now) {
  if (old.length * now.length > STEPS_MAX) return [...old.map(marked('removed')), ...now.map(marked('added'))];
  const width = now.length + 1;
  const common = new Uint32Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = now.length - 1; j >= 0; j -= 1) {
      common[i * width + j] = old[i] === now[j]
        ? common[(i + 1) * width + j + 1] + 1
        : Math.max(common[(i + 1) * width + j], common[i * width + j + 1]);
    }
  }
  const lines = [];
  let [i, j] = [0, 0];
  while (i < old.length && j < now.length) {
    if (old[i] === now[j]) { lines.push({ mark: 'same', text: old[i] }); i += 1; j += 1; }
    else if (common[(i + 1) * width + j] >= common[i * width + j + 1]) { lines.push({ mark: 'removed', text: old[i] }); i += 1; }
    else { lines.push({ mark: 'added', text: now[j] }); j += 1; }
  }
  return [...lines, ...old.slice(i).map(marked('removed')), ...now.slice(j).map(marked('added'))];
}

// Long unchanged stretches become one line that counts them.
function folded(lines) {
  const isNear = lines.map((_, at) => lines.slice(Math.max(0, at - AROUND), at + AROUND + 1).some(({ mark }) => mark !== 'same'));
  const found = [];
  for (const [at, line] of lines.entries()) {
    const last = found.at(-1);
    if (isNear[at]) found.push(line);
    else if (last?.mark === 'skipped') last.lines += 1;
    else found.push({ mark: 'skipped', lines: 1 });
  }
  return found;
}

const text = (value) => (typeof value === 'string' ? value : undefined);
const firstText = (object, names) => names.map((name) => text(object?.[name])).find((found) => found !== undefined);

const OLD = ['old_string', 'oldText', 'old_str', 'old_text'];
const NEW = ['new_string', 'newText', 'new_str', 'new_text'];
const CONTENT = ['content', 'contents', 'file_text', 'text'];
const PATHS = ['path', 'file_path', 'filePath', 'filename', 'uri'];
const WRITES = /write|create|put|save/i;

// The texts that a call replaced: `[{ before, after }]`, with `before` null where nobody recorded it.
export function replaced(tool, args) {
  if (!args || typeof args !== 'object') return [];
  const edits = Array.isArray(args.edits) ? args.edits : [args];
  const pairs = edits
    .map((edit) => ({ before: firstText(edit, OLD), after: firstText(edit, NEW) }))
    .filter(({ before, after }) => before !== undefined && after !== undefined);
  if (pairs.length) return pairs;
  const content = firstText(args, CONTENT);
  const isFile = firstText(args, PATHS) !== undefined && WRITES.test(tool);
  return isFile && content !== undefined ? [{ before: null, after: content }] : [];
}

// The whole text that a call wrote, and the one that a call read.
export const written = (tool, args) => {
  const [only, ...others] = replaced(tool, args);
  return only && !others.length && only.before === null ? only.after : null;
};

export function texts(response) {
  const parts = Array.isArray(response?.content) ? response.content : [];
  const found = parts.map((part) => (part?.type === 'text' ? text(part.text) : undefined));
  return found.length && found.every((part) => part !== undefined) ? found : null;
}

// The command of a shell, whatever the shell's tool is called.
const SHELLS = /^(bash|sh|shell|zsh|exec|terminal|local_shell|execute_command|run_command|run_in_terminal|run_terminal_cmd|run_shell_command|exec_command)$/i;
export const isShell = (tool) => SHELLS.test(tool ?? '');

export function command(args) {
  const given = args?.command ?? args?.cmd ?? args?.script;
  if (Array.isArray(given)) return given.filter((part) => typeof part === 'string').join(' ');
  return text(given) ?? null;
}
