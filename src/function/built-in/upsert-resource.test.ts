import { expect, test } from 'vitest';
import { runFunction } from './support/testing.ts';
import { upsertResource } from './upsert-resource.ts';

const service = (port: number, namespace = 'sea', annotations = '') =>
  `apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n  namespace: ${namespace}\n${annotations}spec:\n  ports:\n    - port: ${port}\n`;

test('replaces a resource in its place', async () => {
  const { files } = await runFunction(
    upsertResource,
    {
      'a.yaml': `# Ours
apiVersion: v1
kind: Service
metadata:
  name: web
  namespace: sea
  annotations:
    old: x
spec:
  type: NodePort
  ports:
    - port: 80 # the usual
`,
      'b.yaml': service(80, 'land'),
    },
    service(8080, 'sea', '  annotations:\n    new: y\n'),
  );
  expect(files).toEqual({
    'a.yaml': `# Ours
apiVersion: v1
kind: Service
metadata:
  name: web
  namespace: sea
  annotations:
    new: y
spec:
  ports:
    - port: 8080 # the usual
`,
    'b.yaml': service(80, 'land'),
  });
});

test('adds a missing resource, without the annotations of the configuration', async () => {
  const own = '  annotations:\n    config.kubernetes.io/index: "3"\n    internal.config.kubernetes.io/path: c.yaml\n';
  const { files } = await runFunction(upsertResource, { 'b.yaml': service(80, 'land') }, service(80, 'sea', own));
  expect(files).toEqual({ 'b.yaml': service(80, 'land'), '': service(80) });
});

test('upserts all resources of a list, with any version of their group', async () => {
  const indented = (text: string) => text.trimEnd().replaceAll('\n', '\n    ');
  const { files } = await runFunction(
    upsertResource,
    {
      'a.yaml': 'apiVersion: apps/v1beta1\nkind: Deployment\nmetadata:\n  name: web\n',
      'b.yaml': service(80),
    },
    `apiVersion: v1
kind: List
metadata:
  name: all
items:
  - ${indented('apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n')}
  - ${indented(service(90))}
  - ${indented(service(70, 'new', '  annotations:\n    config.kubernetes.io/target-path: sub/c.yaml\n'))}
  - ${indented(service(71, 'new'))}
`,
  );
  expect(files).toEqual({
    'a.yaml': 'apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n',
    'b.yaml': service(90),
    'sub/c.yaml': service(71, 'new'),
  });
});

test('replaces only in the file that is named', async () => {
  const target = '  annotations:\n    config.kubernetes.io/target-path: b.yaml\n';
  const { files } = await runFunction(upsertResource, { 'a.yaml': service(1) }, service(2, 'sea', target));
  expect(files).toEqual({ 'a.yaml': service(1), 'b.yaml': service(2) });
});

test('reports an invalid configuration', async () => {
  await expect(runFunction(upsertResource, service(1))).rejects.toThrow('upsert-resource needs a configuration');
  const list = (items: string) => `apiVersion: v1\nkind: List\nmetadata:\n  name: all\n${items}`;
  await expect(runFunction(upsertResource, service(1), list('items: x\n'))).rejects.toThrow('items must be a list');
  await expect(runFunction(upsertResource, service(1), list('items: [{}]\n'))).rejects.toThrow('items[0] must be');
  expect((await runFunction(upsertResource, service(1), list(''))).files['resources.yaml']).toBe(service(1));
});
