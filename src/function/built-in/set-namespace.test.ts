import { expect, test } from 'vitest';
import { setNamespace } from './set-namespace.ts';
import { runFunction } from './support/testing.ts';

const NOTHING_ELSE = 'info: all `depends-on` annotations are up-to-date. no `namespace` changed';

test('sets all namespaces and what names them', async () => {
  const { files, messages } = await runFunction(
    setNamespace,
    `apiVersion: v1
kind: Namespace
metadata:
  name: one # the team
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
---
apiVersion: v1
kind: Service
metadata:
  name: web
  namespace: "two"
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: boats.example.org
spec:
  conversion:
    strategy: Webhook
    webhook:
      clientConfig:
        service:
          name: convert
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata:
  name: v1.boats.example.org
spec:
  service:
    name: boats
    namespace: three
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: admins
subjects:
  - kind: ServiceAccount
    name: web
    namespace: four
  - kind: ServiceAccount
    name: bare
  - kind: Group
    name: team
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: readers
  namespace: two
subjects:
  - kind: ServiceAccount
    name: web
    namespace: two
`,
    { namespace: 'sea' },
  );
  expect(files['resources.yaml']).toBe(`apiVersion: v1
kind: Namespace
metadata:
  name: sea # the team
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: sea
---
apiVersion: v1
kind: Service
metadata:
  name: web
  namespace: "sea"
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: boats.example.org
spec:
  conversion:
    strategy: Webhook
    webhook:
      clientConfig:
        service:
          name: convert
          namespace: sea
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata:
  name: v1.boats.example.org
spec:
  service:
    name: boats
    namespace: sea
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: admins
subjects:
  - kind: ServiceAccount
    name: web
    namespace: sea
  - kind: ServiceAccount
    name: bare
  - kind: Group
    name: team
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: readers
  namespace: sea
subjects:
  - kind: ServiceAccount
    name: web
    namespace: sea
`);
  expect(messages).toEqual([
    'info: namespace [default four one three two] updated to "sea", 8 value(s) changed',
    NOTHING_ELSE,
  ]);
});

const UNTOUCHED: Record<string, string> = {
  'a definition without a conversion webhook': `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: boats.example.org
spec:
  conversion:
    strategy: None
`,
  'an API service without a service': `apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata:
  name: v1.apps
spec:
  version: v1
`,
  'a cluster-scoped resource': `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: reader
`,
  'a local-config resource': `apiVersion: v1
kind: ConfigMap
metadata:
  name: kptfile.kpt.dev
  annotations:
    config.kubernetes.io/local-config: "true"
data:
  name: example
`,
  'a Kptfile': `apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: example
  namespace: one
`,
  'a webhook configuration': `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: checks
webhooks:
  - name: a.example.org
    clientConfig:
      service:
        name: a
        namespace: one
`,
};

test.each(Object.entries(UNTOUCHED))('leaves %s alone', async (_, text) => {
  const { files, messages } = await runFunction(setNamespace, text, { namespace: 'sea' });
  expect(files['resources.yaml']).toBe(text);
  expect(messages).toEqual(['info: all matching namespaces are already "sea". no value changed', NOTHING_ELSE]);
});

const PLAIN = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: plain\n';
const BOAT = 'apiVersion: example.org/v1\nkind: Boat\nmetadata:\n  name: ship\n';

test.each(['v0.1', 'v0.1.3'])('%s moves a resource of an unknown kind that names no namespace', async (tag) => {
  const { files, messages } = await runFunction(setNamespace, BOAT, { namespace: 'sea' }, tag);
  expect(files['resources.yaml']).toBe(`${BOAT}  namespace: sea\n`);
  expect(messages).toEqual(['info: namespace [default] updated to "sea", 1 value(s) changed', NOTHING_ELSE]);
});

test.each(['v0.2.0', 'v0.4.1', 'v0.4.5', 'latest'])(
  '%s moves one of an unknown kind only if it names one',
  async (tag) => {
    const config = { namespace: 'sea' };
    expect((await runFunction(setNamespace, BOAT, config, tag)).files['resources.yaml']).toBe(BOAT);
    const placed = `${BOAT}  namespace: harbour\n`;
    const { files } = await runFunction(setNamespace, placed, config, tag);
    expect(files['resources.yaml']).toBe(`${BOAT}  namespace: sea\n`);
  },
);

test('the namespace `default` is written where there is none', async () => {
  const text = PLAIN;
  const { files, messages } = await runFunction(setNamespace, text, { namespace: 'default' });
  expect(files['resources.yaml']).toBe(`${text}  namespace: default\n`);
  expect(messages[0]).toBe('info: namespace [default] updated to "default", 1 value(s) changed');
  const again = await runFunction(setNamespace, files['resources.yaml'] ?? '', { namespace: 'default' });
  expect(again.files).toEqual(files);
});

test('with a matcher for another namespace, `default` is not written', async () => {
  const text = PLAIN;
  const config = { namespace: 'default', namespaceMatcher: 'other' };
  expect((await runFunction(setNamespace, text, config)).files['resources.yaml']).toBe(text);
});

test.each(['v0.4.2', 'v0.4.5', 'v0.4'])('%s reports a configuration without a namespace and passes', async (tag) => {
  for (const config of [undefined, {}]) {
    const { messages, errorsPass, files } = await runFunction(setNamespace, BOAT, config, tag);
    expect(messages).toEqual([expect.stringMatching(/^error: .*(configuration|namespace)/)]);
    expect(errorsPass).toBe(true);
    expect(files['resources.yaml']).toBe(BOAT);
  }
});

test.each(['v0.1.3', 'v0.4.1', 'latest'])('%s fails of a configuration without a namespace', async (tag) => {
  await expect(runFunction(setNamespace, BOAT, undefined, tag)).rejects.toThrow('set-namespace needs a configuration');
  await expect(runFunction(setNamespace, BOAT, {}, tag)).rejects.toThrow('`data.namespace` should not be empty');
});

test('uses the definitions of the package for custom resources', async () => {
  const definition = (kind: string, scope: string) => `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: ${kind.toLowerCase()}s.example.org
spec:
  group: example.org
  names:
    kind: ${kind}
  scope: ${scope}
`;
  const custom = (kind: string, metadata: string) =>
    `apiVersion: example.org/v1\nkind: ${kind}\nmetadata:\n  name: x\n${metadata}`;
  const { files } = await runFunction(
    setNamespace,
    {
      'crds.yaml': [definition('Boat', 'Namespaced'), definition('Sea', 'Cluster')].join('---\n'),
      'boat.yaml': custom('Boat', ''),
      'sea.yaml': custom('Sea', '  namespace: odd\n'),
      'other.yaml': custom('Other', '  namespace: odd\n'),
    },
    { namespace: 'blue' },
  );
  expect(files['boat.yaml']).toBe(custom('Boat', '  namespace: blue\n'));
  expect(files['sea.yaml']).toBe(custom('Sea', '  namespace: odd\n'));
  expect(files['other.yaml']).toBe(custom('Other', '  namespace: blue\n'));
});

test('moves only what matches, by its namespace or by the one that it has upstream', async () => {
  const resource = (name: string, rest: string) => `apiVersion: v1\nkind: Secret\nmetadata:\n  name: ${name}\n${rest}`;
  const origin = '  annotations:\n    internal.kpt.dev/upstream-identifier: "|Secret|old|c"\n';
  const { files, messages } = await runFunction(
    setNamespace,
    [
      resource('a', '  namespace: old\n'),
      resource('b', '  namespace: other\n'),
      resource('c', `  namespace: third\n${origin}`),
      resource('d', ''),
    ].join('---\n'),
    'apiVersion: fn.kpt.dev/v1alpha1\nkind: SetNamespace\nmetadata:\n  name: move\nnamespace: sea\nnamespaceMatcher: old\n',
  );
  expect(files['resources.yaml']).toBe(
    [
      resource('a', '  namespace: sea\n'),
      resource('b', '  namespace: other\n'),
      resource('c', `  namespace: sea\n${origin}`),
      resource('d', ''),
    ].join('---\n'),
  );
  expect(messages[0]).toBe('info: namespace [old third] updated to "sea", 2 value(s) changed');
});

test('updates references to resources of the package, and no others', async () => {
  const dependent = (name: string, on: string) =>
    `apiVersion: v1\nkind: Secret\nmetadata:\n  name: ${name}\n  namespace: old\n  annotations:\n    config.kubernetes.io/depends-on: ${on}\n`;
  const { files, messages } = await runFunction(
    setNamespace,
    {
      'a.yaml': dependent('a', '/namespaces/old/Secret/b'),
      'b.yaml': dependent('b', '/namespaces/old/Secret/absent'),
      'c.yaml': dependent('c', '/namespaces/old/Secret/a, /Namespace/old,/namespaces/old/Secret/b'),
    },
    { namespace: 'sea' },
  );
  const annotationOf = (file: string) => /depends-on: (.*)/.exec(files[file] ?? '')?.[1];
  expect(annotationOf('a.yaml')).toBe('/namespaces/sea/Secret/b');
  expect(annotationOf('b.yaml')).toBe('/namespaces/old/Secret/absent');
  expect(annotationOf('c.yaml')).toBe('/namespaces/sea/Secret/a, /Namespace/old,/namespaces/sea/Secret/b');
  expect(messages[1]).toBe('info: `depends-on` annotation namespace [old] updated to "sea", 3 value(s) changed');
});

test('takes the name of the package from its context', async () => {
  const context = `apiVersion: v1
kind: ConfigMap
metadata:
  name: kptfile.kpt.dev
data:
  name: ghost
`;
  const { files } = await runFunction(setNamespace, 'apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n', context);
  expect(files['resources.yaml']).toContain('namespace: ghost\n');
});

test('refuses configurations that name no namespace', async () => {
  const secret = 'apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n';
  await expect(runFunction(setNamespace, secret)).rejects.toThrow('set-namespace needs a configuration');
  await expect(runFunction(setNamespace, secret, {})).rejects.toThrow('`data.namespace` should not be empty');
  await expect(runFunction(setNamespace, secret, { name: 'x' })).rejects.toThrow('`data.namespace`');
  await expect(runFunction(setNamespace, secret, secret)).rejects.toThrow(
    'cannot be configured by config.yaml: Secret a',
  );
});
