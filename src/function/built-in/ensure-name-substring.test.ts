import { describe, expect, test } from 'vitest';
import { ensureNameSubstring } from './ensure-name-substring.ts';
import { runFunction } from './support/testing.ts';

const app = (prefix: string) => `apiVersion: v1
kind: ConfigMap
metadata:
  name: ${prefix}settings
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: ${prefix}runner
---
apiVersion: v1
kind: Service
metadata:
  name: ${prefix}web
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: ${prefix}web
  annotations:
    config.kubernetes.io/depends-on: /namespaces/default/ConfigMap/${prefix}settings
spec:
  template:
    spec:
      serviceAccountName: ${prefix}runner # who
      containers:
        - name: settings
          envFrom:
            - configMapRef:
                name: ${prefix}settings
            - secretRef:
                name: settings
      volumes:
        - name: a
          projected:
            sources:
              - configMap:
                  name: "${prefix}settings"
        - name: b
          configMap:
            name: elsewhere
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: ${prefix}web
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: ${prefix}web
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: ${prefix}web
spec:
  rules:
    - http:
        paths:
          - backend:
              service:
                name: ${prefix}web
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: ${prefix}reader
rules:
  - resources: [configmaps]
    resourceNames: [${prefix}settings, other]
  - resources: [services]
    resourceNames:
      - settings
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: ${prefix}readers
  namespace: sea
roleRef:
  kind: ClusterRole
  name: ${prefix}reader
subjects:
  - kind: ServiceAccount
    name: ${prefix}runner
    namespace: default
  - kind: ServiceAccount
    name: runner
    namespace: other
  - kind: Group
    name: runner
`;

test('prepends to names and follows references, and changes nothing the second time', async () => {
  const { files } = await runFunction(ensureNameSubstring, app(''), { prepend: 'dev-' });
  expect(files['resources.yaml']).toBe(app('dev-'));
  expect((await runFunction(ensureNameSubstring, app('dev-'), { prepend: 'dev-' })).files['resources.yaml']).toBe(
    app('dev-'),
  );
});

test('keeps names that have a meaning', async () => {
  const resource = (apiVersion: string, kind: string, name = 'boats') =>
    `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata:\n  name: ${name}\n`;
  const kept = [
    resource('apiextensions.k8s.io/v1', 'CustomResourceDefinition'),
    resource('apiregistration.k8s.io/v1', 'APIService'),
    resource('v1', 'Namespace'),
    resource('kpt.dev/v1', 'Kptfile'),
    resource('v1', 'ConfigMap', 'kptfile.kpt.dev'),
  ].join('---\n');
  const { files } = await runFunction(ensureNameSubstring, kept, { append: '-x' });
  expect(files['resources.yaml']).toBe(kept);
});

test('keeps references to what has the text already, and to other namespaces', async () => {
  const { files } = await runFunction(
    ensureNameSubstring,
    `apiVersion: v1
kind: Secret
metadata:
  name: key-dev
  namespace: a
---
apiVersion: v1
kind: Secret
metadata:
  name: key
  namespace: b
---
apiVersion: v1
kind: Pod
metadata:
  name: p
  namespace: a
  annotations:
    config.kubernetes.io/depends-on: /namespaces/a/Secret/key-dev,/namespaces/b/Secret/key
spec:
  imagePullSecrets:
    - name: key-dev
    - name: key
`,
    { append: '-dev' },
  );
  expect(files['resources.yaml']).toBe(`apiVersion: v1
kind: Secret
metadata:
  name: key-dev
  namespace: a
---
apiVersion: v1
kind: Secret
metadata:
  name: key-dev
  namespace: b
---
apiVersion: v1
kind: Pod
metadata:
  name: p-dev
  namespace: a
  annotations:
    config.kubernetes.io/depends-on: /namespaces/a/Secret/key-dev,/namespaces/b/Secret/key-dev
spec:
  imagePullSecrets:
    - name: key-dev
    - name: key
`);
});

test('changes the fields that its configuration names', async () => {
  const { files } = await runFunction(
    ensureNameSubstring,
    'apiVersion: example.org/v1\nkind: Boat\nmetadata:\n  name: a\nspec:\n  name: b\n',
    `apiVersion: fn.kpt.dev/v1alpha1
kind: EnsureNameSubstring
metadata:
  name: names
substring: dev-
additionalNameFields:
  - path: spec/name
    kind: Boat
  - path: metadata/name
`,
  );
  expect(files['resources.yaml']).toBe(
    'apiVersion: example.org/v1\nkind: Boat\nmetadata:\n  name: dev-a\nspec:\n  name: dev-b\n',
  );
});

test('reports an invalid configuration', async () => {
  const run = (config: Record<string, string>) => runFunction(ensureNameSubstring, app(''), config);
  await expect(run({ prepend: 'a', append: 'b' })).rejects.toThrow('only 1 entry is allowed');
  await expect(run({ prefix: 'a' })).rejects.toThrow('unknown editMode "prefix"');
  await expect(run({ append: '' })).rejects.toThrow('substring must not be empty');
});

describe('the namespace of a subject that is a service account', () => {
  const account = (name: string, namespace: string) =>
    `apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: ${name}\n  namespace: ${namespace}\n`;
  const binding = (kind: string, name: string, rest: string) =>
    `apiVersion: rbac.authorization.k8s.io/v1\nkind: ${kind}\nmetadata:\n  name: ${name}\n  namespace: one\nsubjects:\n  - kind: ServiceAccount\n    name: ${rest}`;
  const last = async (...resources: string[]) => {
    const { files } = await runFunction(ensureNameSubstring, resources.join('---\n'), { prepend: 'dev-' });
    return (files['resources.yaml'] ?? '').split('---\n').at(-1);
  };

  test('is that of the account in the namespace of the binding', async () => {
    expect(await last(account('bot', 'one'), account('bot', 'two'), binding('RoleBinding', 'b', 'bot\n'))).toBe(
      binding('RoleBinding', 'dev-b', 'dev-bot\n    namespace: one\n'),
    );
  });

  test('is written where no name changes, too', async () => {
    expect(await last(account('dev-bot', 'one'), binding('RoleBinding', 'dev-b', 'dev-bot\n'))).toBe(
      binding('RoleBinding', 'dev-b', 'dev-bot\n    namespace: one\n'),
    );
  });

  test('stays unresolved if several accounts match, or none', async () => {
    const open = binding('ClusterRoleBinding', 'dev-b', 'dev-bot\n');
    expect(await last(account('dev-bot', 'one'), account('dev-bot', 'two'), open)).toBe(open);
    expect(await last(account('other', 'one'), open)).toBe(open);
    const elsewhere = binding('RoleBinding', 'dev-b', 'dev-bot\n');
    expect(await last(account('dev-bot', 'two'), elsewhere)).toBe(elsewhere);
  });
});
