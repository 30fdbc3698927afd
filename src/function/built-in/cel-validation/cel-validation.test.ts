import { expect, test } from 'vitest';
import { runFunction } from '../support/testing.ts';
import { celValidation } from './cel-validation.ts';

const deployment = (name: string, replicas: number | string, image = 'nginx:1.29') => `apiVersion: apps/v1
kind: Deployment
metadata:
  name: ${name}
  namespace: shop
  labels:
    app: ${name}
spec:
  replicas: ${replicas}
  template:
    spec:
      containers:
        - name: main
          image: ${image}
`;

const SERVICE = 'apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n  namespace: shop\nspec:\n  ports: []\n';
const LOCAL = `apiVersion: v1
kind: ConfigMap
metadata:
  name: local
  annotations:
    config.kubernetes.io/local-config: "true"
`;

const validator = (rules: string) =>
  `apiVersion: fn.kpt.dev/v1alpha1\nkind: CELValidator\nmetadata:\n  name: rules\n${rules}`;

const POLICY = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: few
  annotations:
    config.kubernetes.io/local-config: "true"
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - apiGroups: [apps]
        apiVersions: [v1]
        operations: [CREATE, UPDATE]
        resources: [deployments]
  matchConditions:
    - name: not-big
      expression: "!object.metadata.name.startsWith('big')"
  variables:
    - name: replicas
      expression: object.spec.replicas
    - name: tooMany
      expression: variables.replicas > 5
  validations:
    - expression: "!variables.tooMany"
      messageExpression: "'has ' + string(variables.replicas) + ' replicas, at most 5'"
      reason: Invalid
`;

const found = (results: Awaited<ReturnType<typeof runFunction>>['results']) =>
  results.map(
    ({ severity, message, resourceRef }) => `${severity} ${resourceRef?.kind} ${resourceRef?.name}: ${message}`,
  );

test('rules with selectors apply to the selected resources', async () => {
  const config = validator(`validations:
  - expression: object.spec.replicas <= 5
    message: at most 5 replicas
    reason: TooMany
    selectors:
      - kind: Deployment
        labels:
          app: web
  - expression: object.metadata.namespace == 'shop'
  - expression: has(object.data)
    selectors:
      - kind: ConfigMap
`);
  const files = {
    'a.yaml': `${deployment('web', 6)}---\n${deployment('other', 7)}`,
    'b.yaml': `${SERVICE}---\n${LOCAL}`,
  };
  const { results, files: after } = await runFunction(celValidation, files, config);
  expect(after).toEqual(files);
  expect(results).toEqual([
    {
      message: 'at most 5 replicas',
      severity: 'error',
      resourceRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', namespace: 'shop' },
      file: { path: 'a.yaml', index: 0 },
      tags: { policy: 'rules', reason: 'TooMany' },
    },
    expect.objectContaining({
      message: 'failed expression: has(object.data)',
      resourceRef: { apiVersion: 'v1', kind: 'ConfigMap', name: 'local' },
      tags: { policy: 'rules' },
    }),
  ]);
});

test('a rule without selectors selects all that a cluster gets', async () => {
  const config = validator('validations:\n  - expression: object.kind == "None"\n');
  const kptfile = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: k\n';
  const { results } = await runFunction(celValidation, [SERVICE, LOCAL, kptfile].join('---\n'), config);
  expect(found(results)).toEqual(['error Service web: failed expression: object.kind == "None"']);
});

test('a rule that cannot be evaluated is an error', async () => {
  const config = validator('validations:\n  - expression: object.spec.replicas < 3\n    message: few\n');
  const { results } = await runFunction(celValidation, SERVICE, config);
  expect(found(results)).toEqual([
    expect.stringMatching(/^error Service web: cannot be evaluated: expression .*replicas/),
  ]);
});

test('a ValidatingAdmissionPolicy is a configuration', async () => {
  const files = [deployment('web', 6), deployment('few', 5), deployment('big', 50), SERVICE].join('---\n');
  const { results } = await runFunction(celValidation, files, POLICY);
  expect(found(results)).toEqual(['error Deployment web: has 6 replicas, at most 5']);
  expect(results[0]?.tags).toEqual({ policy: 'few', reason: 'Invalid' });
});

test('without a configuration the local policies of the package count', async () => {
  const cluster = POLICY.replace('"true"', '"false"').replace('name: few', 'name: other');
  const { results } = await runFunction(celValidation, [POLICY, cluster, deployment('web', 6)].join('---\n'));
  expect(results.map(({ tags }) => tags?.policy)).toEqual(['few']);
  await expect(runFunction(celValidation, cluster)).rejects.toThrow(
    'cel-validation needs a configuration: set configMap or configPath to a CELValidator',
  );
});

test('failurePolicy Ignore turns what cannot be evaluated into a warning', async () => {
  const text = deployment('web', 3).replace('  replicas: 3\n', '');
  expect(found((await runFunction(celValidation, text, POLICY)).results)).toEqual([
    expect.stringMatching(/^error Deployment web: cannot be evaluated: expression "object\.spec\.replicas"/),
  ]);
  const { messages } = await runFunction(celValidation, text, POLICY.replace('Fail', 'Ignore'));
  expect(messages).toEqual([expect.stringMatching(/^warning: cannot be evaluated/)]);
});

test('a messageExpression that fails is replaced by the message', async () => {
  const rule = (messageExpression: string) =>
    validator(
      `validations:\n  - expression: "false"\n    message: plain\n    messageExpression: ${messageExpression}\n`,
    );
  for (const expression of ['object.no.such', '"1"', '"\'two\\\\nlines\'"', '"\'  \'"'])
    expect((await runFunction(celValidation, SERVICE, rule(expression))).messages).toEqual(['error: plain']);
  expect((await runFunction(celValidation, SERVICE, rule('object.metadata.name'))).messages).toEqual(['error: web']);
});

test.each([
  ['another group', { from: '[apps]', to: '[batch]' }, 0],
  ['every group', { from: '[apps]', to: '["*"]' }, 1],
  ['another version', { from: '[v1]', to: '[v2]' }, 0],
  ['a subresource', { from: '[deployments]', to: '[deployments/scale]' }, 0],
  ['a resource with its subresources', { from: '[deployments]', to: '[deployments/*]' }, 1],
  ['everything', { from: '[deployments]', to: '["*"]' }, 1],
  ['only deletions', { from: '[CREATE, UPDATE]', to: '[DELETE]' }, 0],
  ['names', { from: '[deployments]', to: '[deployments]\n        resourceNames: [web]' }, 1],
  ['other names', { from: '[deployments]', to: '[deployments]\n        resourceNames: [wob]' }, 0],
  ['what has a namespace', { from: '[deployments]', to: '[deployments]\n        scope: Namespaced' }, 1],
  ['what has none', { from: '[deployments]', to: '[deployments]\n        scope: Cluster' }, 0],
  [
    'labels',
    { from: '  matchConstraints:', to: '  matchConstraints:\n    objectSelector: {matchLabels: {app: web}}' },
    1,
  ],
  [
    'other labels',
    { from: '  matchConstraints:', to: '  matchConstraints:\n    objectSelector: {matchLabels: {app: x}}' },
    0,
  ],
  [
    'labels of the namespace',
    { from: '  matchConstraints:', to: '  matchConstraints:\n    namespaceSelector: {matchLabels: {tier: prod}}' },
    1,
  ],
  [
    'another namespace',
    {
      from: '  matchConstraints:',
      to: '  matchConstraints:\n    namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [shop]}]}',
    },
    0,
  ],
  [
    'an exclusion',
    {
      from: '  matchConstraints:',
      to: '  matchConstraints:\n    excludeResourceRules: [{apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: ["*"]}]',
    },
    0,
  ],
] as const)('constraints match by %s', async (_, { from, to }, count) => {
  const namespace = 'apiVersion: v1\nkind: Namespace\nmetadata:\n  name: shop\n  labels:\n    tier: prod\n';
  expect(POLICY).toContain(from);
  const policy = POLICY.replace(from, to).replace('variables.replicas > 5', 'object.kind == "Deployment"');
  const { results } = await runFunction(
    celValidation,
    `${namespace}---\n${deployment('web', 6)}`,
    policy.replace('object.spec.replicas', 'has(object.spec.replicas)'),
  );
  expect(found(results).filter((text) => text.startsWith('error Deployment'))).toHaveLength(count);
});

test('constraints know custom resources by their definition, or guess', async () => {
  const pipe = 'apiVersion: example.org/v1\nkind: Pipe\nmetadata:\n  name: p\n';
  const definition =
    'apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: d\nspec:\n  group: example.org\n  scope: Cluster\n  names:\n    kind: Pipe\n    plural: pipework\n';
  const policy = (resource: string) =>
    POLICY.replace('[apps]', '[example.org]')
      .replace('[deployments]', `[${resource}]`)
      .replace('"!variables.tooMany"', '"false"');
  const count = async (files: string, resource: string) =>
    (await runFunction(celValidation, files, policy(resource))).results.length;
  expect(await count(pipe, 'pipes')).toBe(1);
  expect(await count(`${pipe}---\n${definition}`, 'pipes')).toBe(0);
  expect(await count(`${pipe}---\n${definition}`, 'pipework')).toBe(1);
});

test.each([
  [
    'a syntax error',
    validator('validations:\n  - expression: "object.("\n'),
    'validations[0].expression: expression "object.("',
  ],
  [
    'what only a cluster knows',
    validator('validations:\n  - expression: oldObject == null\n'),
    'oldObject exists only during admission in a cluster',
  ],
  [
    'parameters',
    POLICY.replace('  validations:', '  paramKind: {apiVersion: v1, kind: ConfigMap}\n  validations:'),
    'spec.paramKind: parameters are available only in a cluster',
  ],
  [
    'request',
    POLICY.replace('"!variables.tooMany"', 'request.userInfo.username != "x"'),
    'spec.validations[0].expression: ',
  ],
  ['an unknown field', validator('validation:\n  - expression: "true"\n'), 'validation'],
  ['no rules', validator('validations: []\n'), 'validations: Invalid value'],
  [
    'a bad selector',
    validator('validations:\n  - expression: "true"\n    selectors:\n      - kinds: Pod\n'),
    'validations[0].selectors[0]',
  ],
  ['another kind', 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n', 'cannot be configured by'],
])('a configuration with %s is reported', async (_, config, message) => {
  await expect(runFunction(celValidation, SERVICE, config)).rejects.toMatchObject({
    code: 'InvalidInput',
    message: expect.stringContaining(message),
  });
});

test('variables are evaluated only where they are used', async () => {
  const config = validator(`variables:
  - name: broken
    expression: object.no.such
  - name: name
    expression: object.metadata.name
validations:
  - expression: variables.name == 'web'
  - expression: variables.broken == 1
`);
  const { results } = await runFunction(celValidation, SERVICE, config);
  expect(found(results)).toEqual([
    expect.stringMatching(/^error Service web: cannot be evaluated: expression "object\.no\.such"/),
  ]);
});

test('costly rules and hostile objects are bounded', async () => {
  const loop = 'object.a.all(a, object.a.all(b, object.a.all(c, a + b + c >= 0)))';
  const config = validator(
    `validations:\n  - expression: ${loop}\n  - expression: has(object.constructor)\n    message: none\n`,
  );
  const text = `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n__proto__: {x: 1}\na: [${Array.from({ length: 300 }, (_, at) => at).join(', ')}]\n`;
  const { messages } = await runFunction(celValidation, text, config);
  expect(messages).toEqual([expect.stringContaining('costs more than'), 'error: none']);
  const many = Array.from({ length: 1200 }, () => SERVICE).join('---\n');
  const { results } = await runFunction(celValidation, many, validator('validations:\n  - expression: "false"\n'));
  expect(results).toHaveLength(1001);
});

test('the examples of its documentation work', async () => {
  const [, rules = '', policy = ''] = celValidation.doc.examples;
  const text = deployment('web', 6, 'nginx:latest');
  expect((await runFunction(celValidation, text, rules)).messages).toEqual([
    'error: at most 5 replicas',
    'error: no resources in main',
  ]);
  expect((await runFunction(celValidation, text, policy)).messages).toEqual(['error: images need a version']);
});
