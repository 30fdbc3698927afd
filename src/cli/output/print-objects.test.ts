import { expect, test } from 'vitest';
import { type Repository, repositoryKind } from '../../resource/kinds/porch/repository.ts';
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
