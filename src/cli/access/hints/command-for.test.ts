import { expect, test } from 'vitest';
import { Terminal } from '../../output/terminal.ts';
import { placedCommand, placedHints } from './command-for.ts';

const sink = { write: () => true };
const invocation = { terminal: new Terminal(sink, sink, {}), environment: {} };

test('a command for a data folder names its user with --as, one for a server does not', () => {
  const command = "sluice rpkg condition set a.b.v1 x/Y True --as-group security --as 'Jane Doe'";
  expect(placedCommand({ data: 'd' }, invocation)(command)).toBe(`${command} --data d`);
  expect(placedCommand({ kubeconfig: 'k' }, invocation, true)(command)).toBe(
    'as a member of group:security, Jane Doe: sluice rpkg condition set a.b.v1 x/Y True --kubeconfig k',
  );
  const after = 'permit the account, then: sluice rpkg approve a.b.v1 --as other-user';
  expect(placedCommand({}, invocation, true)(after)).toBe(
    'permit the account, then: as another user: sluice rpkg approve a.b.v1',
  );
  expect(placedCommand({}, invocation, true)('sluice rpkg propose a.b.v1')).toBe('sluice rpkg propose a.b.v1');
  expect(placedCommand({}, invocation, true)('gate x: resolver ipam works on it')).toBe(
    'gate x: resolver ipam works on it',
  );
});

test('an adoption is a command for a data folder, not for a server', () => {
  const command = 'sluice repo adopt apps -n team';
  expect(placedCommand({ data: 'd' }, invocation)(command)).toBe(`${command} --data d`);
  expect(placedCommand({ kubeconfig: 'k' }, invocation, true)(command)).toBe(
    `in a data folder whose key the server trusts (docs/trust.md): ${command}`,
  );
  const message = 'not signed; "sluice repo adopt" lists it';
  expect(placedHints(message, { kubeconfig: 'k' })).toBe(message);
});

test('commands in messages work on the place of the command line', () => {
  const message = 'not found; "sluice rpkg get" lists what there is';
  expect(placedHints(message, { data: 'X' })).toBe('not found; "sluice rpkg get --data X" lists what there is');
  expect(placedHints(message, {})).toBe(message);
});
