import { expect, test } from 'vitest';
import { Terminal } from './terminal.ts';

const none = { write: () => undefined };

test('commands in quotes are those that work: with npx under npm', () => {
  const text = 'see "sluice why a.b.c"; "sluice" and sluice.dev/Ready stay, "mysluice up" too';
  expect(new Terminal(none, none, {}).copyable(text)).toBe(text);
  expect(new Terminal(none, none, { npm_command: 'exec' }).copyable(text)).toBe(
    text.replace('"sluice why', '"npx sluice why'),
  );
});

test('commands name the path of the program if PATH has no sluice', () => {
  const called = '/opt/my tools/sluice.js';
  expect(new Terminal(none, none, { PATH: '/nonexistent' }, called).copyable('see "sluice why x"')).toBe(
    `see "'/opt/my tools/sluice.js' why x"`,
  );
});

test('a line is completed once, for the namespace of the object that it is about', () => {
  const lines: string[] = [];
  const sink = { write: (text: string) => lines.push(text) };
  const terminal = new Terminal(sink, sink, {});
  terminal.completeCommands = (text, namespace = 'team') => text.replace('sluice get', `$& -n ${namespace}`);
  terminal.line('see "sluice get"');
  terminal.note('see "sluice get"', 'default');
  expect(lines).toEqual(['see "sluice get -n team"\n', 'see "sluice get -n default"\n']);
});
