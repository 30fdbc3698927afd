import { expect, test } from 'vitest';
import { type Repository, repositoryKind } from '../../resource/kinds/porch/repository.ts';
import type { PrinterColumn } from '../../resource/schema/kind-schema.ts';
import { placedHints } from '../access/hints/command-for.ts';
import { printObjects } from './print-objects.ts';
import { Terminal } from './terminal.ts';

test('with all namespaces, rows of the same name differ by their namespace', () => {
  let text = '';
  const out = { write: (more: string) => (text += more) };
  const objects = ['ns1', 'ns2'].map(
    (namespace) => ({ metadata: { namespace, name: 'r' }, spec: { type: 'git' } }) as unknown as Repository,
  );
  printObjects(new Terminal(out, out, {}), repositoryKind, objects, {
    output: 'table',
    headers: true,
    now: 0,
    showNamespace: true,
  });
  expect(text.split('\n').map((line) => line.split(/ +/)[0])).toEqual(['NAMESPACE', 'ns1', 'ns2', '']);
});

test('a command in a message works on the namespace of its object', () => {
  let text = '';
  const out = { write: (more: string) => (text += more) };
  const terminal = new Terminal(out, out, {});
  terminal.completeCommands = placedHints({}, { terminal, environment: {} });
  const message = '"sluice repo unreg r" forgets this one';
  const conditions = [{ type: 'Ready', status: 'False', reason: 'Error', message, lastTransitionTime: '' }];
  const objects = ['default', 'team'].map(
    (namespace) =>
      ({ metadata: { namespace, name: 'r' }, spec: { type: 'git' }, status: { conditions } }) as unknown as Repository,
  );
  printObjects(terminal, { ...repositoryKind, printerColumns: [MESSAGE] }, objects, {
    ...{ output: 'table', headers: false, now: 0, showNamespace: true },
  });
  expect(text.split('\n')).toEqual([
    'default   "sluice repo unreg r" forgets this one',
    'team      "sluice repo unreg r -n team" forgets this one',
    '',
  ]);
});

const MESSAGE: PrinterColumn<Repository> = {
  ...{ name: 'Message', type: 'string' },
  value: ({ status }) => status?.conditions?.[0]?.message,
};
