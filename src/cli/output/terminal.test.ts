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
