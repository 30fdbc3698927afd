import { expect, test } from 'vitest';
import { describeProposal } from './describe-proposal.ts';
import { renderedChanges } from './resource-changes.ts';

const NO_SIGNAL = new AbortController().signal;
const files = (contents: Record<string, string>) =>
  new Map(Object.entries(contents).map(([path, text]) => [path, Buffer.from(text)]));
const configMap = (name: string, value: string, namespace = 'shop') =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\n  namespace: ${namespace}\ndata:\n  key: ${value}\n`;
const LIST = 'kind: List, apiVersion: v1, metadata: {name: l}';
const DATA = 'stringData: {pw: HUNTER}';
const secret = (fields: string) => `apiVersion: v1\nkind: Secret\nmetadata:\n  name: access\n${fields}`;

test('resources are compared by their identity, wherever they are; other files as files, without conditions', async () => {
  const kptfile = (rest: string) => `apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\n${rest}`;
  const before = files({
    'one.yaml': `${configMap('same', 'a')}---\n${configMap('changed', 'a')}---\n${configMap('removed', 'a')}`,
    Kptfile: kptfile(''),
    'README.md': 'old\n',
  });
  const after = files({
    'moved.yaml': configMap('same', 'a'),
    'one.yaml': `${configMap('changed', 'b')}---\n${configMap('added', 'a')}`,
    Kptfile: kptfile('status:\n  conditions:\n  - type: a\n    status: "True"\n'),
    'README.md': 'new\n',
    'deploy.yaml': 'apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n',
  });
  const changes = await renderedChanges(before, after, NO_SIGNAL);
  expect(changes.resources.files.map(({ path, change }) => `${change} ${path}`)).toEqual([
    'Added ConfigMap/shop/added',
    'Modified ConfigMap/shop/changed',
    'Removed ConfigMap/shop/removed',
    'Added Deployment.apps/web',
  ]);
  expect(changes.resources.files[1]?.patch).toContain('\n-  key: a\n+  key: b\n');
  expect(changes.files.files.map(({ path, change }) => `${change} ${path}`)).toEqual(['Modified README.md']);
});

test('values of Secrets are in no change, wherever a Secret is written; which keys changed is', async () => {
  const before = files({ 's.yaml': secret('data:\n  kept: b25l\n  other: b25l\n'), 'b.yaml': 'a: [\nkind: Secret\n' });
  const after = files({
    's.yaml': secret('data:\n  kept: b25l\n  other: dHdv\n  added: dGhyZWU=\nstringData: {plain: four}\n'),
    'list.yaml': `apiVersion: v1\nkind: List\nmetadata: {name: l}\nitems:\n- {kind: Secret, data: {x: Zml2ZQ==}}\n`,
    'b.yaml': 'a: [\nkind: Secret\ndata: c2l4\n',
    'applied.yaml': secret(
      '  namespace: x\n  annotations:\n    kubectl.kubernetes.io/last-applied-configuration: "c2V2ZW4="\n',
    ),
  });
  const text = JSON.stringify(await renderedChanges(before, after, NO_SIGNAL));
  for (const value of ['b25l', 'dHdv', 'dGhyZWU', 'four', 'Zml2ZQ', 'c2l4', 'c2V2ZW4'])
    expect(text).not.toContain(value);
  expect(text).toContain('+  other: \\"*** (hidden, changed)\\"');
  expect(text).toContain('   kept: \\"*** (hidden)\\"');
});

test.each([
  ['with an escape in its kind', 'kind: "\\x53ecret"'],
  ['with an escape in the name of the field', '"k\\x69nd": Secret'],
  ['with a line break in its kind', 'kind: "Sec\\\n      ret"'],
  ['with an alias as its kind', 'kind: *k'],
  ['after an explicit key', '? kind\n    : Secret'],
  ['with a comment before its kind', 'kind: # a\n      Secret'],
  ['with binary text as its kind', 'kind: !!binary U2VjcmV0'],
])('a Secret %s is hidden, as a resource, in a file that is none, and in JSON', async (_what, kind) => {
  const items = `items:\n  - apiVersion: v1\n    ${kind}\n    stringData: {pw: HUNTER}\n`;
  const list = `apiVersion: v1\nkind: List\nmetadata:\n  name: l\n  annotations: {a: &k Secret}\n${items}`;
  const broken = `${list}not: [valid\n`;
  const after = files({ 'list.yaml': list, 'broken.yaml': broken, 'values.yaml': `a: &k Secret\n${items}` });
  const changes = await renderedChanges(new Map(), after, NO_SIGNAL);
  const text = JSON.stringify(changes);
  expect(text).not.toContain('HUNTER');
  expect(text.match(/hidden, as it contains a Secret/g)).toHaveLength(3);
});

test.each([
  [
    'of a list that begins on the line of the marker',
    'l.yaml',
    `--- {x: &k Secret,\n${LIST}, items: [{kind: *k, ${DATA}}]}\n`,
  ],
  ['as JSON in a string', 'l.yaml', configMap('map', '"{\\"kind\\":\\"Secret\\",\\"a\\":\\"HUNTER\\"}"')],
  ['as JSON in a string in a string', 'l.md', JSON.stringify(JSON.stringify('{"kind": "Secret", "a": "HUNTER"}'))],
  ['in a string with an escape', 'l.yaml', configMap('map', `"kind: Secr\\x65t\\n${DATA}"`)],
  ['as the key of a map, with an escape', 'l.yaml', `? "kind: Secr\\x65t\\n${DATA}"\n: x\n`],
  ['in JSON with a name in capital letters', 'l.JSON', '{"kind": "\\u0053ecret", "data": {"pw": "HUNTER"}}'],
  ['in YAML with a name in capital letters', 'l.YML', `kind: "\\x53ecret"\n${DATA}\n`],
])('a Secret %s is hidden', async (_what, path, text) => {
  const changes = JSON.stringify(await renderedChanges(new Map(), files({ [path]: text }), NO_SIGNAL));
  expect(changes).not.toContain('HUNTER');
  expect(changes).toContain('hidden, as it contains a Secret');
});

test('JSON with a Secret is hidden, and what only names Secrets is shown', async () => {
  const names = 'a: Secrets are not here, "\\x41"\nname: SecretKeySelector\n';
  const after = files({
    'a.json': '{"items": [{"kind": "\\u0053ecret", "data": {"pw": "HUNTER"}}]}',
    'map.yaml': `${configMap('map', 'SecretKey')}  names: |\n    ${names.replace('\n', '\n    ')}`,
    'values.yaml': names,
    'README.md': names,
  });
  const { resources, files: others } = await renderedChanges(new Map(), after, NO_SIGNAL);
  const shown = [...resources.files, ...others.files];
  expect(JSON.stringify(shown)).not.toContain('HUNTER');
  expect(shown.filter(({ patch }) => patch.includes('SecretKey')).map(({ path }) => path)).toEqual([
    'ConfigMap/shop/map',
    'README.md',
    'values.yaml',
  ]);
});

test('the text stays within the limit of hosts, counts what it leaves out, and hostile texts end no block', async () => {
  const hostile = '```\n<!-- sluice:end --></details> @all';
  const many = Object.fromEntries(
    Array.from({ length: 300 }, (_, at) => [
      `${'d'.repeat(200)}/${at}.yaml`,
      configMap(`"${'n'.repeat(200)}-${at}"`, JSON.stringify(hostile.repeat(20))),
    ]),
  );
  const readmes = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`${'r'.repeat(250)}-${at}`, hostile]));
  const rendered = await renderedChanges(new Map(), files({ ...many, ...readmes }), NO_SIGNAL);
  const gates = Array.from({ length: 150 }, (_, at) => ({
    ...{ type: `example.com/gate-${at}`, open: false, state: 'NotTrue', settledBy: '@all '.repeat(200) },
    explanation: '`| <b>'.repeat(500),
  }));
  const body = describeProposal({
    explanation: { name: 'apps.app.w1', gates, enforcement: 'enforce', reasons: [] } as never,
    diff: { to: 'apps.app.w1', files: [] },
    ...{ rendered, upstream: undefined },
    review: { publishOn: 'merge', approvers: [] } as never,
    rules: Array.from({ length: 100 }, () => ({ rule: 'Soak', message: '@all | '.repeat(200), resolvedBy: '@all' })),
  });
  expect(body.length).toBeLessThan(56_000);
  expect(body).toMatch(/\n\d+ more resources are not listed\./);
  expect(body).toMatch(/\n\d+ more files are not listed\./);
  const outside = body.replaceAll(/^(`{3,})diff\n[\s\S]*?^\1$/gm, '').replaceAll(/`[^`\n]*`/g, '');
  expect(outside).not.toContain('@all');
  expect(outside.match(/<\/details>/g)).toHaveLength(2);
});

test('one file of thousands of equal documents is counted, while other work goes on', async () => {
  let turns = 0;
  const timer = setInterval(() => {
    turns += 1;
  }, 1);
  const text = 'apiVersion: v1\nkind: A\nmetadata: {name: a}\n---\n'.repeat(3000);
  const { resources } = await renderedChanges(new Map(), files({ 'a.yaml': text }), NO_SIGNAL);
  clearInterval(timer);
  expect(turns).toBeGreaterThan(5);
  expect(resources.files.slice(0, 2).map(({ path }) => path)).toEqual(['A/a', 'A/a (10)']);
  const ended = renderedChanges(new Map(), files({ 'a.yaml': text }), AbortSignal.timeout(1));
  await expect(ended).rejects.toThrow(/aborted/);
});

test('a document that takes long to be read as a resource is compared as a file', async () => {
  const long = (value: string) =>
    configMap('a', value) + Array.from({ length: 5000 }, (_, at) => `  k${at}: ${value}\n`).join('');
  // Its brackets are mistakes, each of them.
  const broken = (value: string) => `${configMap('b', value)}  brackets: ${']'.repeat(12_000)}\n`;
  const at = (value: string) => files({ 'long.yaml': long(value), 'broken.yaml': broken(value) });
  let [turns, isOver] = [0, false];
  const others = () => {
    turns += 1;
    if (!isOver) setImmediate(others);
  };
  setImmediate(others);
  const changes = await renderedChanges(at('a'), at('b'), NO_SIGNAL);
  isOver = true;
  expect(changes.resources.files).toEqual([]);
  expect(changes.files.files.map(({ path }) => path)).toEqual(['broken.yaml', 'long.yaml']);
  expect(turns).toBeGreaterThan(5);
});

test('a file that is too large to be compared is not searched for Secrets', async () => {
  const large = (value: string) => files({ 'large.yaml': secret(`data:\n  a: ${value.repeat(1024 * 1024)}\n`) });
  const { files: changed } = await renderedChanges(large('YWFh'), large('YmJi'), NO_SIGNAL);
  expect(changed.files).toEqual([{ path: 'large.yaml', change: 'Modified', truncated: true, patch: '' }]);
});
