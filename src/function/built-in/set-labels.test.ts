import { expect, test } from 'vitest';
import { setLabels } from './set-labels.ts';
import { runFunction } from './support/testing.ts';

const LABELS = { tier: 'sea', colour: 'blue' };

test('labels every resource, and the selectors of services', async () => {
  const { files, messages } = await runFunction(
    setLabels,
    `apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  labels: {}
---
apiVersion: v1
kind: Service
metadata:
  name: web
  labels:
    colour: red # for now
spec:
  selector:
    app: web
`,
    LABELS,
  );
  expect(files['resources.yaml']).toBe(`apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  labels:
    colour: blue
    tier: sea
---
apiVersion: v1
kind: Service
metadata:
  name: web
  labels:
    colour: blue # for now
    tier: sea
spec:
  selector:
    app: web
    colour: blue
    tier: sea
`);
  expect(messages).toEqual(['info: set 6 labels in total']);
});

test('labels the templates of workloads and the selectors for them', async () => {
  const { files, messages } = await runFunction(
    setLabels,
    `apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: db
spec:
  template:
    spec:
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            - labelSelector:
                matchLabels:
                  colour: red
                  other: x
      topologySpreadConstraints:
        - labelSelector:
            matchLabels:
              other: x
  volumeClaimTemplates:
    - metadata:
        name: data
`,
    { colour: 'blue' },
  );
  expect(files['resources.yaml']).toBe(`apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: db
  labels:
    colour: blue
spec:
  template:
    spec:
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            - labelSelector:
                matchLabels:
                  colour: blue
                  other: x
      topologySpreadConstraints:
        - labelSelector:
            matchLabels:
              other: x
    metadata:
      labels:
        colour: blue
  volumeClaimTemplates:
    - metadata:
        name: data
        labels:
          colour: blue
  selector:
    matchLabels:
      colour: blue
`);
  expect(messages).toEqual(['info: set 5 labels in total']);
});

const BARE_DEPLOYMENT = 'apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  replicas: 3\n';
const LABELLED_DEPLOYMENT = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels:
    tier: sea
spec:
  replicas: 3
  selector:
    matchLabels:
      tier: sea
`;

test.each(['v0.1', 'v0.1.5'])('%s makes the template of pods and jobs where it is missing', async (tag) => {
  const { files } = await runFunction(setLabels, BARE_DEPLOYMENT, { tier: 'sea' }, tag);
  expect(files['resources.yaml']).toBe(
    `${LABELLED_DEPLOYMENT}  template:\n    metadata:\n      labels:\n        tier: sea\n`,
  );
  const job = 'apiVersion: batch/v1\nkind: CronJob\nmetadata:\n  name: tidy\nspec:\n  suspend: true\n';
  const made = (await runFunction(setLabels, job, { tier: 'sea' }, tag)).files['resources.yaml'];
  expect(made).toContain('  jobTemplate:\n    metadata:\n      labels:\n        tier: sea\n');
});

test.each(['v0.2.0', 'v0.2.4', 'latest'])('%s makes no template that is missing', async (tag) => {
  const { files } = await runFunction(setLabels, BARE_DEPLOYMENT, { tier: 'sea' }, tag);
  expect(files['resources.yaml']).toBe(LABELLED_DEPLOYMENT);
  const job = 'apiVersion: batch/v1\nkind: CronJob\nmetadata:\n  name: tidy\nspec:\n  suspend: true\n';
  const made = (await runFunction(setLabels, job, { tier: 'sea' }, tag)).files['resources.yaml'];
  expect(made).toBe(job.replace('name: tidy\n', 'name: tidy\n  labels:\n    tier: sea\n'));
});

test.each([
  ['v0.1.5', '      app: web\n      tier: sea\n'],
  ['v0.2.0', '      app: web\n'],
])('%s: labels in a selector that does not name them', async (tag, expected) => {
  const policy =
    'apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata:\n  name: in\n  labels:\n    tier: sea\nspec:\n  podSelector:\n    matchLabels:\n      app: web\n';
  const { files } = await runFunction(setLabels, policy, { tier: 'sea' }, tag);
  expect(files['resources.yaml']).toBe(policy.replace('      app: web\n', expected));
});

test('labels jobs and their pods, and only known labels of their selectors', async () => {
  const { files } = await runFunction(
    setLabels,
    `apiVersion: batch/v1
kind: CronJob
metadata:
  name: tidy
spec:
  jobTemplate:
    spec:
      selector:
        matchLabels:
          tier: land
      template:
        spec: {}
`,
    LABELS,
  );
  expect(files['resources.yaml']).toBe(`apiVersion: batch/v1
kind: CronJob
metadata:
  name: tidy
  labels:
    colour: blue
    tier: sea
spec:
  jobTemplate:
    spec:
      selector:
        matchLabels:
          tier: sea
      template:
        spec: {}
        metadata:
          labels:
            colour: blue
            tier: sea
    metadata:
      labels:
        colour: blue
        tier: sea
`);
});

test('changes the selectors of network policies where they name a label', async () => {
  const policy = (tier: string) => `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: in
  labels:
    tier: sea
spec:
  podSelector:
    matchLabels:
      tier: ${tier}
  ingress:
    - from:
        - podSelector:
            matchLabels:
              tier: ${tier}
        - podSelector:
            matchLabels:
              app: web
`;
  const { files } = await runFunction(setLabels, policy('land'), { tier: 'sea' });
  expect(files['resources.yaml']).toBe(policy('sea'));
});

test('sets labels in the fields that its configuration names', async () => {
  const { files } = await runFunction(
    setLabels,
    `apiVersion: example.org/v1
kind: Fleet
metadata:
  name: a
spec:
  boats:
    - name: x
    - name: y
`,
    `apiVersion: fn.kpt.dev/v1alpha1
kind: SetLabels
metadata:
  name: labels
labels:
  size: 10
additionalLabelFields:
  - path: spec/boats[]/labels
    kind: Fleet
    group: example.org
    create: true
  - path: spec/never
    kind: Fleet
`,
  );
  expect(files['resources.yaml']).toBe(`apiVersion: example.org/v1
kind: Fleet
metadata:
  name: a
  labels:
    size: "10"
spec:
  boats:
    - name: x
      labels:
        size: "10"
    - name: y
      labels:
        size: "10"
`);
});

test('leaves local resources alone, and a package of nothing else', async () => {
  const local = `apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  annotations:
    config.kubernetes.io/local-config: "true"
`;
  const { files, messages } = await runFunction(setLabels, local, LABELS);
  expect(files['resources.yaml']).toBe(local);
  expect(messages).toEqual(['info: no input resources']);
});

test('reports an invalid configuration', async () => {
  const secret = 'apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n';
  expect((await runFunction(setLabels, secret, {})).messages).toEqual([
    'warning: no `labels` arguments are given in FunctionConfig',
  ]);
  const nested = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata:\n  a:\n    b: c\n';
  await expect(runFunction(setLabels, secret, nested)).rejects.toThrow('ConfigMap c: data.a must be a text');
  await expect(runFunction(setLabels, 'kind: X\nmetadata:\n  name: a\n  labels: none\n', LABELS)).rejects.toThrow(
    'resources.yaml: X a: metadata.labels.colour cannot be set',
  );
});
