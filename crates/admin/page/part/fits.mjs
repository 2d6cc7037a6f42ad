// The filters of the gate, for records that come in live. Pure.

// The shortest part of an id that means the id.
const PART_MIN = 4;

export function fits(record, filters) {
  const meta = record.metadata;
  const agent = record.agent;
  const same = {
    type: record.type, status: record.status, server: record.server_name, tool: record.tool_name,
    effective_class: meta.effective_class, intent_type: meta.intent?.operation_type,
    request_id: record.request_id,
  };
  for (const [name, value] of Object.entries(same)) {
    if (filters[name] && filters[name] !== value) return false;
  }
  if (filters.session_id && !isPart(filters.session_id, record.session_id ?? '')) return false;
  const asks = ['target_system', 'target_resource', 'under', 'access'].some((name) => filters[name]);
  if (asks && !record.targets.some((target) => fitsTouch(target, meta.effective_class, filters))) return false;
  const names = [agent.name, agent.name.split('#')[0], agent.token];
  if (filters.agent && !names.includes(filters.agent)) return false;
  if (filters.start_time && record.timestamp < filters.start_time) return false;
  if (filters.end_time && record.timestamp >= filters.end_time) return false;
  const texts = [record.tool_name, record.server_name, meta.intent?.reason, record.error_message,
    ...record.targets.flatMap((target) => [target.system, target.resource])];
  const wanted = filters.q?.toLowerCase();
  return !wanted || texts.some((text) => text?.toLowerCase().includes(wanted));
}

const isPart = (wanted, id) => id === wanted || (wanted.length >= PART_MIN && (id.startsWith(wanted) || id.endsWith(wanted)));

function fitsTouch({ system, resource, access }, kind, filters) {
  const { target_system: wanted, target_resource: name, under, access: done } = filters;
  const isAround = (content) => filters.containers === 'true' && contains(system, resource, content);
  if (wanted && system !== wanted) return false;
  if (name && !fitsPattern(name, resource) && !isAround(name)) return false;
  const folder = under && (under.replace(/\/+$/, '') || '/');
  if (folder && resource !== folder && !contains(system, folder, resource) && (name || !isAround(folder))) return false;
  return !done || (done === 'delete' ? access === 'write' && kind === 'destructive' : access === done);
}

// True if a resource lies in another: its name continues with a separator.
export function contains(system, container, content) {
  if (!content.startsWith(container) || content === container) return false;
  if (container.endsWith('/')) return true;
  const sign = content[container.length];
  if (sign === '/') return true;
  if (sign === '?') return system === 'web';
  if (system === 'filesystem') return false;
  return '#:@'.includes(sign) || (sign === '.' && !content.includes('/'));
}

// True if a name fits a pattern, in which `*` is any text.
export function fitsPattern(pattern, name) {
  const [first, ...rest] = pattern.split('*');
  if (!rest.length) return name === pattern;
  const last = rest.pop();
  if (!name.startsWith(first) || !name.slice(first.length).endsWith(last)) return false;
  let at = first.length;
  for (const part of rest) {
    const found = name.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return at + last.length <= name.length;
}
