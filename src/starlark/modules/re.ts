import type { RE2JS } from 're2js';
import { messageOf } from '../../foundation/sluice-error.ts';
import { linearRegex } from '../../foundation/text/linear-regex.ts';
import { unpack, wantInt, wantString } from '../library/arguments.ts';
import { fail, type Machine } from '../machine/machine.ts';
import { newList, newTuple } from '../values/iterate.ts';
import type { Value } from '../values/value.ts';
import { moduleOf } from './module.ts';

/** Regular expressions in Go's syntax, which match in linear time. */
export const RE = moduleOf('re', {
  findall(machine, args, named) {
    const [pattern = null, text = null] = unpack('findall', args, named, ['pattern', 'string', 'flags?']);
    return newTuple(
      machine,
      matches(machine, 'findall', pattern, text).map(({ groups }) => groups[0] ?? ''),
    );
  },
  match(machine, args, named) {
    const [pattern = null, text = null] = unpack('match', args, named, ['pattern', 'string', 'flags?']);
    return newList(
      machine,
      matches(machine, 'match', pattern, text).map(({ groups }) => newTuple(machine, groups)),
    );
  },
  split(machine, args, named) {
    const parameters = ['pattern', 'string', 'maxsplit?', 'flags?'];
    const [pattern = null, value = null, most = 0] = unpack('split', args, named, parameters);
    const text = wantString('split', value, 'string');
    const limit = wantInt('split', most, 'maxsplit');
    const parts: string[] = [];
    let at = 0;
    for (const { start, end } of matches(machine, 'split', pattern, text)) {
      if (limit > 0 && parts.length === limit - 1) break;
      // An empty match splits between characters only.
      if (end === 0 || (start === end && start === text.length)) continue;
      parts.push(text.slice(at, start));
      at = end;
    }
    return newTuple(machine, [...parts, text.slice(at)]);
  },
  sub(machine, args, named) {
    const parameters = ['pattern', 'repl', 'string', 'count?', 'flags?'];
    const [pattern = null, by = null, value = null, count = 0] = unpack('sub', args, named, parameters);
    const [template, text] = [wantString('sub', by, 'repl'), wantString('sub', value, 'string')];
    const limit = wantInt('sub', count, 'count') || Number.POSITIVE_INFINITY;
    const parts: string[] = [];
    let at = 0;
    for (const { start, end, groups, names } of matches(machine, 'sub', pattern, text).slice(0, limit)) {
      const made = template.replace(/\$(?:\$|\{(\w+)\}|(\w+))/g, (whole, braced?: string, plain?: string) => {
        if (whole === '$$') return '$';
        const name = braced ?? plain ?? '';
        return groups[/^\d+$/.test(name) ? Number(name) : (names[name] ?? -1)] ?? '';
      });
      machine.text(made.length);
      parts.push(text.slice(at, start), made);
      at = end;
    }
    return parts.join('') + text.slice(at);
  },
});

interface Match {
  readonly start: number;
  readonly end: number;
  /** The whole match, then the groups; empty where one did not match. */
  readonly groups: string[];
  readonly names: Readonly<Record<string, number>>;
}

function matches(machine: Machine, name: string, regex: Value, value: Value): Match[] {
  const [source, text] = [wantString(name, regex, 'pattern'), wantString(name, value, 'string')];
  const pattern = compiled(source);
  // Repetitions compile a short pattern to a long program.
  machine.step(pattern.programSize() * (16 + (text.length >> 3)));
  const matcher = pattern.matcher(text);
  const names = Object.assign(Object.create(null), matcher.namedGroups) as Record<string, number>;
  const found: Match[] = [];
  while (matcher.find()) {
    const groups = Array.from({ length: matcher.groupCount() + 1 }, (_, at) => matcher.group(at) ?? '');
    machine.elements(groups.length + 4);
    machine.text(groups.reduce((length, group) => length + group.length, 0));
    found.push({ start: matcher.start(), end: matcher.end(), groups, names });
  }
  return found;
}

function compiled(source: string): RE2JS {
  try {
    return linearRegex(source, 'pattern');
  } catch (error) {
    return fail(messageOf(error));
  }
}
