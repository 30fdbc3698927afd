import { expect, test } from 'vitest';
import { genConfigmap } from './gen-configmap.ts';
import { runFunction } from './support/testing.ts';

const OTHER = { 'a.yaml': 'apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n' };

const config = (rest: string) =>
  `apiVersion: fn.kpt.dev/v1alpha1\nkind: GenConfigMap\nmetadata:\n  name: made\n${rest}`;

const FULL = config(`configMapMetadata:
  name: settings
  namespace: sea
  labels:
    colour: blue
params:
  host: web.example.org
  port: 8080
data:
  - type: literal
    key: hello
    value: "{{.host}}"
  - type: gotmpl
    key: app.yaml
    value: |
      url: https://{{.host}}:{{ .port }}/
      # done
`);

test('makes a ConfigMap', async () => {
  const { files } = await runFunction(genConfigmap, OTHER, FULL);
  expect(files).toEqual({
    ...OTHER,
    '_gen_configmap_settings.yaml': `apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  namespace: sea
  labels:
    colour: blue
data:
  app.yaml: |
    url: https://web.example.org:8080/
    # done
  hello: "{{.host}}"
`,
  });
});

test('writes over the ConfigMap that is there, and nothing the second time', async () => {
  const old = (data: string) => `apiVersion: v1
kind: ConfigMap
metadata:
  name: made # by hand
${data}`;
  const given = config('data:\n  - key: a\n    value: 1\n');
  const { files } = await runFunction(genConfigmap, { 'x.yaml': old('data:\n  b: c\n  a: "2" # one\n') }, given);
  expect(files).toEqual({ 'x.yaml': old('data:\n  a: "1" # one\n') });
  expect((await runFunction(genConfigmap, files, given)).files).toEqual(files);
});

test('makes an empty ConfigMap of no data', async () => {
  const { files } = await runFunction(genConfigmap, OTHER, config(''));
  expect(files['_gen_configmap_made.yaml']).toBe('apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: made\n');
});

test.each([
  ['- value: x', 'data entry 0, key must not be empty'],
  ['- {key: a, type: gotmpl, value: "x{{"}', 'data entry 0: an action {{ is not closed'],
  ['- {key: a, type: gotmpl, value: "{{.no}}"}', 'unknown parameter "no"'],
  ['- {key: a, type: gotmpl, value: "{{template \\"x\\"}}"}', 'is not supported'],
])('refuses the entry %s', async (entry, message) => {
  await expect(runFunction(genConfigmap, OTHER, config(`data:\n  ${entry}\n`))).rejects.toThrow(message);
});
