import { expect, test } from 'vitest';
import { setStandardLabels } from './set-standard-labels.ts';
import { runFunction } from './support/testing.ts';

const LOCAL = '  annotations:\n    config.kubernetes.io/local-config: "true"\n';
const FILES = {
  'sub/Kptfile': `apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: inner\n${LOCAL}`,
  Kptfile: `apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: ghost\n${LOCAL}`,
  'a.yaml': 'apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n',
};
const CONTEXT = `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: kptfile.kpt.dev\n${LOCAL}`;
const config = (forDeployment: boolean) =>
  `apiVersion: fn.kpt.dev/v1alpha1\nkind: SetStandardLabels\nmetadata:\n  name: s\nforDeployment: ${forDeployment}\n`;

const labelled = (name: string) => `${FILES['a.yaml']}  labels:\n    app.kubernetes.io/${name}: ghost\n`;

test.each([
  ['name', FILES, undefined],
  ['instance', { ...FILES, 'package-context.yaml': CONTEXT }, undefined],
  ['instance', FILES, config(true)],
  ['name', { ...FILES, 'package-context.yaml': CONTEXT }, config(false)],
])('sets the label %s', async (name, files, given) => {
  const result = await runFunction(setStandardLabels, files, given);
  expect(result.files).toEqual({ ...files, 'a.yaml': labelled(name) });
  expect(result.messages).toEqual(['info: set 1 labels in total']);
});

test('needs a Kptfile', async () => {
  await expect(runFunction(setStandardLabels, FILES['a.yaml'])).rejects.toThrow('found no Kptfile');
});
