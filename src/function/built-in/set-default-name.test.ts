import { expect, test } from 'vitest';
import { setDefaultName } from './set-default-name.ts';
import { runFunction } from './support/testing.ts';

const resource = (group: string, kind: string, name: string) =>
  `apiVersion: ${group}/v1beta1\nkind: ${kind}\nmetadata:\n  name: ${name}\n`;
const STORAGE = 'storage.cnrm.cloud.google.com';

test('names resources of Config Connector, and no others', async () => {
  const { files, messages } = await runFunction(
    setDefaultName,
    [resource(STORAGE, 'StorageBucket', 'a'), resource('apps', 'Deployment', 'a')].join('---\n'),
    { name: 'mine' },
  );
  expect(files['resources.yaml']).toBe(
    [resource(STORAGE, 'StorageBucket', 'mine'), resource('apps', 'Deployment', 'a')].join('---\n'),
  );
  expect(messages).toEqual([]);
});

test('does not give two resources of a kind the same name', async () => {
  const text = [resource(STORAGE, 'StorageBucket', 'a'), resource(STORAGE, 'StorageBucket', 'b')].join('---\n');
  const { files, messages } = await runFunction(setDefaultName, text, { name: 'mine' });
  expect(files['resources.yaml']).toBe(text);
  expect(messages).toEqual(['error: cannot be named mine: resources.yaml: StorageBucket a would have the same name']);
  await expect(runFunction(setDefaultName, text, {})).rejects.toThrow('`data.name` should not be empty');
});
