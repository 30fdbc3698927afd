import { expect, test } from 'vitest';
import { setAnnotations } from './set-annotations.ts';
import { runFunction } from './support/testing.ts';

test('annotates all resources, local ones too, and the pods of workloads', async () => {
  const { files, results } = await runFunction(
    setAnnotations,
    {
      'local.yaml': `apiVersion: v1
kind: ConfigMap
metadata:
  name: local
  annotations:
    config.kubernetes.io/local-config: "true"
`,
      'web.yaml': `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 1
`,
    },
    { owner: 'blue', area: 'sea' },
  );
  expect(files['local.yaml']).toBe(`apiVersion: v1
kind: ConfigMap
metadata:
  name: local
  annotations:
    config.kubernetes.io/local-config: "true"
    area: sea
    owner: blue
`);
  expect(files['web.yaml']).toBe(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  annotations:
    area: sea
    owner: blue
spec:
  replicas: 1
  template:
    metadata:
      annotations:
        area: sea
        owner: blue
`);
  expect(results.map(({ message, field, file }) => [message, field?.path, file?.path])).toEqual([
    ['set annotations: {"area":"sea","owner":"blue"}', 'metadata.annotations', 'local.yaml'],
    ['set annotations: {"area":"sea","owner":"blue"}', 'metadata.annotations', 'web.yaml'],
    ['set annotations: {"area":"sea","owner":"blue"}', 'spec.template.metadata.annotations', 'web.yaml'],
  ]);
});

test('annotates the fields that its configuration names', async () => {
  const { files } = await runFunction(
    setAnnotations,
    `apiVersion: batch/v1
kind: CronJob
metadata:
  name: tidy
  annotations:
    owner: 'red'
data:
  selector: {}
`,
    `apiVersion: fn.kpt.dev/v1alpha1
kind: SetAnnotations
metadata:
  name: a
annotations:
  owner: blue
additionalAnnotationFields:
  - path: data/selector/example.org\\/notes
    create: true
  - path: data/none
`,
  );
  expect(files['resources.yaml']).toBe(`apiVersion: batch/v1
kind: CronJob
metadata:
  name: tidy
  annotations:
    owner: 'blue'
data:
  selector:
    example.org/notes:
      owner: blue
spec:
  jobTemplate:
    metadata:
      annotations:
        owner: blue
    spec:
      template:
        metadata:
          annotations:
            owner: blue
`);
});

test('needs annotations', async () => {
  const secret = 'apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n';
  await expect(runFunction(setAnnotations, secret, {})).rejects.toThrow('input annotation list cannot be empty');
  await expect(runFunction(setAnnotations, secret)).rejects.toThrow('set-annotations needs a configuration');
});
