// biome-ignore-all lint/suspicious/noTemplateCurlyInString: this is how setters are written.
import type { FunctionInput, FunctionOutcome } from './published-function.ts';

/** An input on which a built-in function is compared with the published one. */
export interface ComparisonCase extends FunctionInput {
  readonly what: string;
  /** What must be equal besides the values. */
  readonly also?: (outcome: FunctionOutcome) => unknown;
  /**
   * Where the built-in function differs on purpose: why, and how both outcomes show it. The table of docs/functions.md has the same.
   */
  readonly differs?: {
    readonly why: string;
    readonly published: (outcome: FunctionOutcome) => boolean;
    readonly builtIn: (outcome: FunctionOutcome) => boolean;
  };
}

const thing = (name: string, rest: string, head = '') =>
  `apiVersion: example.org/v1\nkind: Thing\nmetadata:\n  name: ${name}\n${head}${rest}`;

const replacements = (list: string) =>
  `apiVersion: fn.kpt.dev/v1alpha1\nkind: ApplyReplacements\nmetadata:\n  name: copy\nreplacements:\n${list}`;

/** Copies `field` of the resource `from` into `paths` of the resource `to`. */
const copy = (field: string, paths: readonly string[], options = '') =>
  replacements(
    `- source:\n    name: from\n    fieldPath: ${field}\n  targets:\n  - select:\n      name: to\n    fieldPaths:\n${paths.map((path) => `    - ${path}\n`).join('')}${options === '' ? '' : `    options: ${options}\n`}`,
  );

const LIST = 'list:\n- name: web-admin\n  image: a:1\n- name: web\n  image: b:2\n';
const pair = (from: string, to: string) => `${thing('from', from)}---\n${thing('to', to)}`;

/** All versions of apply-replacements. */
export const REPLACEMENTS: readonly ComparisonCase[] = [
  {
    what: 'a text over a text',
    resources: pair('value: new\n', 'field: old\nother: 1\n'),
    config: copy('value', ['field']),
  },
  { what: 'a missing field', resources: pair('value: new\n', 'field: old\n'), config: copy('value', ['a.b', 'field']) },
  { what: 'a missing place of a list', resources: pair('value: new\n', LIST), config: copy('value', ['list.5.image']) },
  {
    what: 'an item that no item matches',
    resources: pair('value: new\n', LIST),
    config: copy('value', ['list.[name=x].image']),
  },
  {
    what: 'an item by its name',
    resources: pair('value: new\n', LIST),
    config: copy('value', ['list.[name=web].image']),
  },
  { what: 'a missing source field', resources: pair('other: new\n', 'field: old\n'), config: copy('value', ['field']) },
  {
    what: 'a missing field that is created',
    resources: pair('value: new\n', 'field: old\n'),
    config: copy('value', ['a.b'], '{create: true}'),
  },
  {
    what: 'a part by a delimiter',
    resources: pair('value: new\n', 'field: a-b-c\n'),
    config: copy('value', ['field'], '{delimiter: "-", index: 1}'),
  },
  {
    what: 'a key with dots',
    resources: pair('value: new\n', 'annotations:\n  a.b/c: old\n'),
    config: copy('value', ['annotations.[a.b/c]']),
  },
  {
    what: 'a mapping over a mapping',
    resources: pair('value: {a: 1}\n', 'field: {b: 2}\n'),
    config: copy('value', ['field']),
  },
  { what: 'a number over a number', resources: pair('value: 5\n', 'field: 7\n'), config: copy('value', ['field']) },
  {
    what: 'a name with a pattern',
    resources: `${thing('from', 'value: new\n')}---\n${thing('web-1', 'field: old\n')}---\n${thing('web-2', 'field: old\n')}`,
    config: replacements(
      '- source:\n    name: from\n    fieldPath: value\n  targets:\n  - select:\n      name: web-.*\n    fieldPaths:\n    - field\n',
    ),
  },
  {
    what: 'a rejected name',
    resources: `${thing('from', 'value: new\n')}---\n${thing('a', 'field: old\n')}---\n${thing('b', 'field: old\n')}`,
    config: replacements(
      '- source:\n    name: from\n    fieldPath: value\n  targets:\n  - select:\n      kind: Thing\n    reject:\n    - name: a\n    - name: from\n    fieldPaths:\n    - field\n',
    ),
  },
  { what: 'a source that nothing matches', resources: thing('to', 'field: old\n'), config: copy('value', ['field']) },
  {
    what: 'a source that two resources match',
    resources: `${thing('from', 'value: 1\n')}---\n${thing('from', 'value: 2\n', '  namespace: other\n')}---\n${thing('to', 'field: old\n')}`,
    config: copy('value', ['field']),
  },
  {
    what: 'the name, without a field path',
    resources: `${thing('from', 'value: new\n')}---\n${thing('to', 'field: old\n')}`,
    config: replacements(
      '- source:\n    name: from\n  targets:\n  - select:\n      name: to\n    fieldPaths:\n    - field\n',
    ),
  },
  { what: 'no configuration', resources: thing('to', 'field: old\n') },
  {
    what: 'a number over a text',
    resources: pair('value: 5\n', 'field: "7"\n'),
    config: copy('value', ['field']),
  },
  {
    what: 'a text that looks like a number over a number',
    resources: pair('value: "5"\n', 'field: 7\n'),
    config: copy('value', ['field']),
  },
];

const setters = (data: string) => `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: setters\ndata:\n${data}`;

export const SETTERS: readonly ComparisonCase[] = [
  { what: 'a text', resources: thing('a', 'image: nginx # kpt-set: ${image}\n'), config: setters('  image: ubuntu\n') },
  {
    what: 'a number',
    resources: thing('a', 'replicas: 3 # kpt-set: ${replicas}\n'),
    config: setters('  replicas: "5"\n'),
  },
  {
    what: 'parts of a text',
    resources: thing('a', 'image: nginx:1.7 # kpt-set: ${image}:${tag}\n'),
    config: setters('  tag: "1.8"\n'),
  },
  {
    what: 'a value in quotes',
    resources: thing('a', 'port: "80" # kpt-set: ${port}\n'),
    config: setters('  port: "90"\n'),
  },
  { what: 'an empty value', resources: thing('a', 'text: x # kpt-set: ${text}\n'), config: setters('  text: ""\n') },
  {
    what: 'a list',
    resources: thing('a', 'list: # kpt-set: ${list}\n- one\n- two\n'),
    config: setters('  list: |\n    - three\n'),
  },
  {
    what: 'a flow list',
    resources: thing('a', 'list: [one] # kpt-set: ${list}\n'),
    config: setters('  list: "[two, three]"\n'),
  },
  {
    what: 'an empty list',
    resources: thing('a', 'list: # kpt-set: ${list}\n- one\n'),
    config: setters('  list: ""\n'),
  },
  {
    what: 'a comment in a line of its own before the first item',
    resources: thing('a', 'list:\n# kpt-set: ${list}\n- one\n'),
    config: setters('  list: "[two]"\n'),
  },
  {
    what: 'the same, with the items indented',
    resources: thing('a', 'list:\n  # kpt-set: ${list}\n  - one\n'),
    config: setters('  list: "[two]"\n'),
  },
  {
    what: 'a comment in a line of its own above a field',
    resources: thing('a', '# kpt-set: ${text}\ntext: x\n'),
    config: setters('  text: "y"\n'),
  },
  {
    what: 'a value that is not a list',
    resources: thing('a', 'list: # kpt-set: ${list}\n- one\n'),
    config: setters('  list: "{a: 1}"\n'),
  },
  {
    what: 'a field without the form',
    resources: thing('a', 'image: nginx # kpt-set: ${image}:${tag}\n'),
    config: setters('  tag: "1"\n'),
  },
  { what: 'no match', resources: thing('a', 'image: nginx\n'), config: setters('  tag: "1"\n') },
  {
    what: 'an image with a digest',
    resources: thing('a', 'image: nginx # kpt-set: ${image}\n'),
    config: setters('  image: "nginx:1@sha256:0123"\n'),
  },
];

const namespaced = (apiVersion: string, kind: string, rest = '', metadata = '') =>
  `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata:\n  name: a\n${metadata}${rest}`;
const IN_ONE = '  namespace: one\n';
const to = (namespace: string) =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: namespace\ndata:\n  namespace: ${namespace}\n`;

export const NAMESPACES: readonly ComparisonCase[] = [
  { what: 'a kind of Kubernetes', resources: namespaced('v1', 'ConfigMap', '', IN_ONE), config: to('two') },
  { what: 'one without a namespace', resources: namespaced('apps/v1', 'Deployment'), config: to('two') },
  { what: 'the namespace default', resources: namespaced('v1', 'Service'), config: to('default') },
  { what: 'an unknown kind without a namespace', resources: namespaced('example.org/v1', 'Boat'), config: to('two') },
  {
    what: 'an unknown kind in a namespace',
    resources: namespaced('example.org/v1', 'Boat', '', IN_ONE),
    config: to('two'),
  },
  {
    what: 'a kind without namespaces',
    resources: namespaced('rbac.authorization.k8s.io/v1', 'ClusterRole'),
    config: to('two'),
  },
  { what: 'a Namespace', resources: namespaced('v1', 'Namespace'), config: to('two') },
  {
    what: 'subjects of a role binding',
    resources: namespaced(
      'rbac.authorization.k8s.io/v1',
      'RoleBinding',
      'subjects:\n- kind: ServiceAccount\n  name: bot\n  namespace: one\n- kind: ServiceAccount\n  name: other\n',
      IN_ONE,
    ),
    config: to('two'),
  },
  {
    what: 'the service of an APIService',
    resources: namespaced(
      'apiregistration.k8s.io/v1',
      'APIService',
      'spec:\n  service:\n    name: a\n    namespace: one\n',
    ),
    config: to('two'),
  },
  {
    what: 'a resource that is local configuration',
    resources: namespaced('v1', 'ConfigMap', '', '  annotations:\n    config.kubernetes.io/local-config: "true"\n'),
    config: to('two'),
  },
  { what: 'no configuration', resources: namespaced('v1', 'ConfigMap') },
  {
    what: 'a configuration without a namespace',
    resources: namespaced('v1', 'ConfigMap'),
    config: 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\ndata: {}\n',
  },
  {
    what: 'the name of the package',
    resources: namespaced('v1', 'ConfigMap'),
    config: 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: kptfile.kpt.dev\ndata:\n  name: shop\n',
  },
  {
    what: 'a definition that converts nothing',
    resources: namespaced('apiextensions.k8s.io/v1', 'CustomResourceDefinition', 'spec:\n  group: example.org\n'),
    config: to('two'),
    differs: {
      why: 'the published function adds a conversion by a service that there is not',
      published: ({ text }) => text.includes('conversion:'),
      builtIn: ({ text }) => !text.includes('conversion:'),
    },
  },
  {
    what: 'a custom resource that the package defines',
    resources: `${namespaced('example.org/v1', 'Boat')}---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: boats.example.org\nspec:\n  group: example.org\n  scope: Namespaced\n  names:\n    kind: Boat\n  conversion:\n    webhook:\n      clientConfig:\n        service:\n          namespace: two\n`,
    config: to('two'),
    differs: {
      why: 'the published function does not look at the definitions of the package',
      published: ({ values }) => JSON.stringify(values).includes('"kind":"Boat","metadata":{"name":"a"}'),
      builtIn: ({ values }) =>
        JSON.stringify(values).includes('"kind":"Boat","metadata":{"name":"a","namespace":"two"}'),
    },
  },
];

const script = (source: string, rest = '') =>
  `apiVersion: fn.kpt.dev/v1alpha1\nkind: StarlarkRun\nmetadata:\n  name: script\n${rest}source: |\n${source.replace(/^(?=.)/gm, '  ')}`;

export const SCRIPTS: readonly ComparisonCase[] = [
  {
    what: 'sets a field',
    resources: thing('a', 'spec:\n  replicas: 1\n'),
    config: script(
      'for r in ctx.resource_list["items"]:\n  r["spec"]["replicas"] = ctx.resource_list["functionConfig"]["params"]["n"]\n',
      'params:\n  n: 3\n',
    ),
  },
  {
    what: 'prints',
    resources: thing('a', 'spec: {}\n'),
    config: script('print("seen")\n'),
    also: ({ stderr, messages }) => [stderr.trim(), messages],
  },
  { what: 'fails', resources: thing('a', 'spec: {}\n'), config: script('fail("no")\n') },
  { what: 'has a syntax error', resources: thing('a', 'spec: {}\n'), config: script('for in:\n') },
  {
    what: 'adds a resource',
    resources: thing('a', 'spec: {}\n'),
    config: script(
      'ctx.resource_list["items"].append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}, "data": {"a": "1"}})\n',
    ),
  },
  { what: 'has no source', resources: thing('a', 'spec: {}\n'), config: script('') },
  {
    what: 'keeps comments',
    resources: thing('a', 'spec:\n  replicas: 1 # few\n'),
    config: script('ctx.resource_list["items"][0]["spec"]["more"] = True\n'),
    differs: {
      why: 'the published function loses all comments',
      published: ({ text }) => !text.includes('# few'),
      builtIn: ({ text }) => text.includes('# few'),
    },
  },
];
