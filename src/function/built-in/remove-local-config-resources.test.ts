import { expect, test } from 'vitest';
import { removeLocalConfigResources } from './remove-local-config-resources.ts';
import { runFunction } from './support/testing.ts';

const resource = (name: string, local?: string, kind = 'ConfigMap') =>
  `apiVersion: v1\nkind: ${kind}\nmetadata:\n  name: ${name}\n${
    local === undefined ? '' : `  annotations:\n    config.kubernetes.io/local-config: "${local}"\n`
  }`;

test('removes local resources but Kptfiles', async () => {
  const { files, messages } = await runFunction(removeLocalConfigResources, {
    Kptfile: resource('pkg', 'true', 'Kptfile'),
    'a.yaml': [resource('a', 'true'), resource('b'), resource('c', 'false')].join('---\n'),
    'd.yaml': resource('d', 'True'),
  });
  expect(files).toEqual({
    Kptfile: resource('pkg', 'true', 'Kptfile'),
    'a.yaml': [resource('b'), resource('c', 'false')].join('---\n'),
  });
  expect(messages).toEqual([
    'info: Number of resources pruned: 2',
    'info: Resource name: [a]',
    'info: Resource name: [d]',
  ]);
});

test('warns if there is none', async () => {
  const { messages } = await runFunction(removeLocalConfigResources, resource('a'));
  expect(messages).toEqual(['warning: Found no resources to prune with the local config annotation']);
});
