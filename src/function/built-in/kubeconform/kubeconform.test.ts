import { expect, test } from 'vitest';
import { runFunction } from '../support/testing.ts';
import { kubeconform, kubeval } from './kubeconform.ts';

const CONTROLLER = `apiVersion: v1
kind: ReplicationController
metadata:
  name: bob
  namespace: shop
spec:
  replicas: asdf
  selector:
    app: nginx
  templates:
    metadata:
      name: nginx
`;

const DEPLOYMENT = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  creationTimestamp: null
  labels:
    app: web
spec:
  replicas: 2
  selector:
    matchLabels:
      app: web
  strategy:
    rollingUpdate:
      maxSurge: 25%
      maxUnavailable: 1
  template:
    metadata:
      labels:
        app: web
    spec:
      containers:
        - name: web
          image: nginx
          ports:
            - containerPort: 80
          resources:
            limits:
              cpu: 1
              memory: 1.5Gi
            requests:
              cpu: 0.5
          livenessProbe:
            httpGet:
              port: http
      volumes:
        - name: work
          emptyDir:
            sizeLimit: 1e3
`;

const DEFINITION = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: pipes.example.org
spec:
  group: example.org
  names:
    kind: Pipe
    plural: pipes
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          required: [spec]
          properties:
            spec:
              type: object
              required: [length]
              properties:
                length:
                  type: integer
                  minimum: 1
                port:
                  x-kubernetes-int-or-string: true
                colour:
                  type: string
                  enum: [red, blue]
                  default: red
                note:
                  type: string
                  nullable: true
                options:
                  type: object
                  x-kubernetes-preserve-unknown-fields: true
                sizes:
                  type: object
                  additionalProperties:
                    type: integer
              x-kubernetes-validations:
                - rule: "self.colour != 'blue' || self.length < 10"
                  message: blue pipes are short
`;

const pipe = (spec: string, rest = '') =>
  `apiVersion: example.org/v1\nkind: Pipe\nmetadata:\n  name: p\nspec: ${spec}\n${rest}`;

const fields = (results: Awaited<ReturnType<typeof runFunction>>['results']) =>
  results.map(({ severity, message, field }) => `${severity} ${field?.path}: ${message}`);

test('finds fields of a wrong type, with resource, field and file', async () => {
  const { results } = await runFunction(kubeconform, { 'a/resources.yaml': `${DEPLOYMENT}---\n${CONTROLLER}` });
  expect(results).toEqual([
    {
      message: 'Invalid value: "asdf": expected integer',
      severity: 'error',
      resourceRef: { apiVersion: 'v1', kind: 'ReplicationController', name: 'bob', namespace: 'shop' },
      field: { path: 'spec.replicas' },
      file: { path: 'a/resources.yaml', index: 1 },
    },
  ]);
});

test('unknown fields are errors if it is strict', async () => {
  const { results } = await runFunction(kubeconform, CONTROLLER, { strict: 'true' });
  expect(fields(results)).toEqual([
    'error spec.replicas: Invalid value: "asdf": expected integer',
    'error spec.templates: unknown field "templates"',
  ]);
});

test.each([
  ['a missing field', ['  selector:\n    matchLabels:\n      app: web\n', ''], 'spec.selector: Required value'],
  [
    'a quantity',
    ['1.5Gi', '1.5GB'],
    'spec.template.spec.containers[0].resources.limits.memory: Invalid value: "1.5GB": must be a quantity, such as 2, 500m or 1.5Gi',
  ],
  [
    'a truth value as a label',
    ['app: web\nspec', 'app: true\nspec'],
    'metadata.labels.app: Invalid value: true: expected string',
  ],
  [
    'a float for a port',
    ['containerPort: 80', 'containerPort: 80.5'],
    'spec.template.spec.containers[0].ports[0].containerPort: Invalid value: 80.5: expected integer',
  ],
  [
    'a list for an int or string',
    ['maxSurge: 25%', 'maxSurge: [1]'],
    'spec.strategy.rollingUpdate.maxSurge: Invalid value: "array": expected integer or string',
  ],
  [
    'an empty item',
    ['- name: web\n', '-\n        - name: web\n'],
    'spec.template.spec.containers[0]: Invalid value: null: expected object',
  ],
])('finds %s', async (_, [from = '', to = ''], expected) => {
  expect(DEPLOYMENT).toContain(from);
  const { results } = await runFunction(kubeconform, DEPLOYMENT.replace(from, to));
  expect(fields(results)).toEqual([`error ${expected}`]);
});

test('accepts valid resources', async () => {
  const { files, results } = await runFunction(kubeconform, DEPLOYMENT, { strict: 'true' });
  expect(results).toEqual([]);
  expect(files).toEqual({ 'resources.yaml': DEPLOYMENT });
});

test('does not show the values of secrets', async () => {
  const secret = `apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\nstringData:\n  pin: 1234\n  odd:\n    - "5678: expected string"\ntype: 9\n`;
  const { results } = await runFunction(kubeconform, secret);
  expect(fields(results)).toEqual([
    'error stringData.pin: Invalid value: expected string',
    'error stringData.odd: Invalid value: expected string',
    'error type: Invalid value: expected string',
  ]);
});

test('a schema may contain itself', async () => {
  const definition = DEFINITION.replace(
    'type: integer\n                  minimum: 1',
    'type: integer\n                  minimum: no',
  );
  const { results } = await runFunction(kubeconform, definition);
  expect(fields(results)).toEqual([
    'error spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.length.minimum: Invalid value: "no": expected number',
  ]);
});

test.each([
  ['{length: 3, port: http, note: null, options: {a: {b: 1}}, sizes: {s: 1}}', []],
  ['{length: 0}', ['error spec.length: Invalid value: 0: must be at least 1']],
  ['{port: 3}', ['error spec.length: Required value']],
  ['{length: 3, colour: green}', ['error spec.colour: Unsupported value: "green": supported values: "red", "blue"']],
  ['{length: 3, sizes: {s: x}}', ['error spec.sizes.s: Invalid value: "x": expected integer']],
  ['{length: 30, colour: blue}', ['error spec: Invalid value: "object": blue pipes are short']],
  ['{length: 3, width: 2}', ['error spec.width: unknown field "width"']],
])('a definition in the package is a schema: %s', async (spec, expected) => {
  const { results } = await runFunction(
    kubeconform,
    { 'crds/pipe.yaml': DEFINITION, 'pipe.yaml': pipe(spec) },
    { strict: 'true' },
  );
  expect(fields(results)).toEqual(expected);
});

test('the metadata of custom resources are validated', async () => {
  const text = pipe('{length: 3}').replace('name: p', 'name: p\n  annotations:\n    a: 1\n  nmespace: x');
  const { results } = await runFunction(kubeconform, `${DEFINITION}---\n${text}`, { strict: 'true' });
  expect(fields(results)).toEqual([
    'error metadata.annotations.a: Invalid value: 1: expected string',
    'error metadata.nmespace: unknown field "nmespace"',
  ]);
});

test('a definition in the old form', async () => {
  const definition = `apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata:
  name: pipes.example.org
spec:
  group: example.org
  version: v1
  names:
    kind: Pipe
    plural: pipes
  validation:
    openAPIV3Schema:
      type: object
      properties:
        spec:
          type: object
          properties:
            length:
              type: integer
`;
  const { results } = await runFunction(kubeconform, `${definition}---\n${pipe('{length: x}')}`);
  expect(fields(results)).toEqual([
    expect.stringContaining('there is no schema for CustomResourceDefinition (apiextensions.k8s.io/v1beta1)'),
    'error spec.length: Invalid value: "x": expected integer',
  ]);
});

test('a definition with an unusable schema is reported once', async () => {
  const broken = DEFINITION.replace('minimum: 1', 'pattern: "(a+"');
  const { results } = await runFunction(kubeconform, `${broken}---\n${pipe('{}')}---\n${pipe('[]')}`);
  expect(results).toMatchObject([
    {
      severity: 'warning',
      message: expect.stringMatching(
        /^resources of kind Pipe \(example\.org\/v1\) are not validated, .*properties\.spec\.properties\.length\.pattern/,
      ),
      resourceRef: { kind: 'CustomResourceDefinition', name: 'pipes.example.org' },
      file: { path: 'resources.yaml', index: 0 },
    },
  ]);
});

test('rules that only a kube-apiserver can evaluate are no errors', async () => {
  const rule = DEFINITION.replace(
    "self.colour != 'blue' || self.length < 10",
    'quantity(self.colour).isGreaterThan(1)',
  );
  expect(fields((await runFunction(kubeconform, `${rule}---\n${pipe('{length: 3}')}`)).results)).toEqual([
    expect.stringMatching(/^warning spec: .*rule cannot be evaluated/),
  ]);
  const unread = DEFINITION.replace("self.colour != 'blue' || self.length < 10", 'self.?colour.hasValue( ');
  const { results } = await runFunction(kubeconform, `${unread}---\n${pipe('{length: x}')}`);
  expect(fields(results)).toEqual(['error spec.length: Invalid value: "x": expected integer']);
});

test('a kind without a schema is reported once, with advice', async () => {
  const ingress = 'apiVersion: extensions/v1beta1\nkind: Ingress\nmetadata:\n  name: i\n';
  const both = `${pipe('{}')}---\n${pipe('{}')}---\n${ingress}`;
  const { messages } = await runFunction(kubeval, both);
  expect(messages).toEqual([
    'warning: there is no schema for Pipe (example.org/v1), so it is not validated: add its CustomResourceDefinition to the package, or name the kind in skip_kinds, or set ignore_missing_schemas',
    expect.stringContaining('so it is not validated; Kubernetes 1.36 has Ingress in networking.k8s.io/v1: '),
  ]);
  expect((await runFunction(kubeval, both, { ignore_missing_schemas: 'true' })).results).toEqual([]);
  expect((await runFunction(kubeval, both, { skip_kinds: 'Pipe, extensions/v1beta1/Ingress' })).results).toEqual([]);
});

test('what no cluster gets is not validated', async () => {
  const local = CONTROLLER.replace(
    '  name: bob',
    '  name: bob\n  annotations:\n    config.kubernetes.io/local-config: "true"',
  );
  const kptfile = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: k\n';
  expect((await runFunction(kubeconform, `${local}---\n${kptfile}`)).results).toEqual([]);
});

test('keys of the configuration may be beside its metadata', async () => {
  const config = 'apiVersion: example.org/v1\nkind: Settings\nmetadata:\n  name: s\nstrict: true\nskip_kinds: Pipe\n';
  const { results } = await runFunction(kubeconform, `${CONTROLLER}---\n${pipe('{}')}`, config);
  expect(fields(results)).toHaveLength(2);
});

test('reports keys without effect, and invalid values', async () => {
  const { messages } = await runFunction(kubeconform, DEPLOYMENT, {
    schema_location: 'https://example.org/schemas',
    additional_schema_locations: 'file:///jsonschema',
    skip_kind: 'Pipe',
  });
  expect(messages).toEqual([
    expect.stringMatching(/^warning: schema_location of the configuration is ignored: nothing is downloaded/),
    expect.stringMatching(/^warning: skip_kind of the configuration is ignored: the key is unknown/),
  ]);
  await expect(runFunction(kubeconform, DEPLOYMENT, { strict: 'yes' })).rejects.toThrow(
    'strict must be "true" or "false"',
  );
});

test('hostile resources are validated within limits', async () => {
  const deep = `${'{a: '.repeat(90)}1${'}'.repeat(90)}`;
  const proto = `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata:\n  __proto__: 1\n  constructor: x\n__proto__: {}\nconstructor: {}\n`;
  const { results } = await runFunction(
    kubeconform,
    `${proto}---\n${DEPLOYMENT.replace('replicas: 2', `replicas: ${deep}`)}`,
    {
      strict: 'true',
    },
  );
  expect(fields(results)).toEqual([
    'error data.__proto__: Invalid value: 1: expected string',
    'error __proto__: unknown field "__proto__"',
    'error constructor: unknown field "constructor"',
    'error spec.replicas: Invalid value: "object": expected integer',
  ]);
  const wrong = `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata: {${Array.from({ length: 200 }, (_, at) => `k${at}: 1`).join(', ')}}\n`;
  const many = await runFunction(kubeconform, Array.from({ length: 20 }, () => wrong).join('---\n'));
  expect(many.results).toHaveLength(1001);
  expect(many.messages.at(-1)).toBe('error: further results are omitted: correct these first');
});
