import { expect, test } from 'vitest';
import { Terminal } from '../../output/terminal.ts';
import { commandFor, placedCommand, placedHints } from './command-for.ts';

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
  expect(placedHints({ kubeconfig: 'k' }, invocation)(message, undefined)).toBe(message);
});

test('commands in messages work on the place of the command line', () => {
  const message = 'not found; "sluice rpkg get" lists what there is';
  expect(placedHints({ data: 'X' }, invocation)(message, undefined)).toBe(
    'not found; "sluice rpkg get --data X" lists what there is',
  );
  expect(placedHints({}, invocation)(message, undefined)).toBe(message);
});

test('commands that name a place get no other', () => {
  for (const options of [
    { data: 'X' },
    { kubeconfig: 'k' },
    { context: 'prod' },
    { kubeconfig: 'k', context: 'prod' },
  ]) {
    const complete = placedHints(options, invocation)('see "sluice repo get"', undefined);
    expect(placedHints(options, invocation)(complete, undefined)).toBe(complete);
  }
});

test('commands name the namespace that they would not work on without -n', () => {
  const options = { namespace: 'team', data: 'd' };
  const hints = placedHints(options, invocation);
  expect(commandFor(options, invocation)('rpkg', 'approve', 'a.b.v1')).toBe(
    'sluice rpkg approve a.b.v1 -n team --data d',
  );
  const command = placedCommand(options, invocation);
  expect(command('sluice wave promote p')).toBe('sluice wave promote p -n team --data d');
  expect(command('sluice wave promote p', 'default')).toBe('sluice wave promote p --data d');
  expect(command('sluice freeze end f --namespace other')).toBe('sluice freeze end f --namespace other --data d');
  for (const group of ['rpkg get', 'repo get', 'why a', 'wave get', 'freeze get', 'target get', 'dora'])
    expect(hints(`see "sluice ${group}" or \`sluice ${group}\``, undefined)).toBe(
      `see "sluice ${group} -n team --data d" or \`sluice ${group} -n team --data d\``,
    );
  expect(hints('"sluice freeze get -A" lists all', undefined)).toBe('"sluice freeze get -A --data d" lists all');
  expect(hints('"sluice up" runs, "sluice key show" too', undefined)).toBe('"sluice up" runs, "sluice key show" too');
  expect(hints('"sluice rpkg get"', 'other')).toBe('"sluice rpkg get -n other --data d"');

  const other = { ...invocation, terminal: new Terminal(sink, sink, {}) };
  other.terminal.defaultNamespace = 'team';
  expect(commandFor({ namespace: 'team' }, other)('rpkg', 'get')).toBe('sluice rpkg get');
  expect(placedHints({}, other)('"sluice rpkg get"', 'default')).toBe('"sluice rpkg get -n default"');
});
