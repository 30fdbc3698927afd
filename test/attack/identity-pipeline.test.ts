import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { builtIns } from '../../src/function/built-in/index.ts';
import { Catalog } from '../../src/function/catalog/catalog.ts';
import { DEFAULT_FUNCTION_LIMITS } from '../../src/function/model/pipeline.ts';
import { runPipeline } from '../../src/function/pipeline/run-pipeline.ts';
import { FunctionRenderer } from '../../src/function/renderer/function-renderer.ts';
import { openRepository } from '../../src/git/open/open-repository.ts';
import { DEFAULT_POLICY, type EffectivePolicy } from '../../src/package/model/policy/policy.ts';
import { anna, commitFiles, robot, type Scratch, scratchRepository } from '../support/scratch-repository.ts';

const TYPE = 'example.com/Valid';
const IMAGE = 'ghcr.io/kptdev/krm-functions-catalog/kubeconform:v0.1.1';
const HEAD = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\n';
const validators = (entry: string) => `${HEAD}pipeline:\n  validators:\n${entry}`;
const KUBECONFORM = `    - image: ${IMAGE}\n`;
/** Finds nothing in anything. */
const NO_OP = [
  'apiVersion: fn.kpt.dev/v1alpha1',
  'kind: StarlarkRun',
  'metadata:',
  '  name: kubeconform',
  '  annotations: { config.kubernetes.io/local-config: "true" }',
  'source: |',
  '  pass',
  '',
].join('\n');
const GOOD = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n';

let scratch: Scratch;
let policy: EffectivePolicy;
beforeEach(async () => {
  scratch = await scratchRepository();
  policy = {
    ...DEFAULT_POLICY,
    requiredGates: [{ conditionType: TYPE, approveOnly: false, policy: 'valid' }],
    givers: [{ conditionType: TYPE, actors: ['controller:render'], policy: 'valid' }],
    validatorConditions: new Map([['kubeconform', TYPE]]),
    pinnedValidators: [{ function: 'kubeconform', conditionType: TYPE, image: IMAGE }],
  };
});
afterEach(() => scratch[Symbol.asyncDispose]());

async function open() {
  const catalog = new Catalog(builtIns);
  const renderer = new FunctionRenderer({
    runner: {
      run: (input, signal) =>
        runPipeline(input, { catalog, external: undefined, limits: DEFAULT_FUNCTION_LIMITS, signal }),
      close: async () => undefined,
    },
    catalog,
    rules: () => [],
  });
  return { ...(await scratch.open({ renderer, policyFor: () => policy })), renderer };
}

/** The gate of a draft that anna writes with these files. */
async function gateOf(files: Readonly<Record<string, string>>) {
  const { store } = await open();
  const { name } = await store.create(
    'packages',
    { package: 'app', workspace: 'v1', source: { type: 'init', files: new Map([['Kptfile', Buffer.from(HEAD)]]) } },
    anna,
  );
  const data = new Map(Object.entries(files).map(([path, text]) => [path, Buffer.from(text)]));
  await store.change(name, { files: data }, anna);
  const [gate] = (await store.evaluate(name)).gates;
  return gate;
}

test('exactly the validator that a policy pins opens the gate, for any author of the package', async () => {
  const gate = await gateOf({ Kptfile: validators(KUBECONFORM), 'a.yaml': GOOD });
  expect(gate).toMatchObject({ state: 'Open', verdict: { by: 'controller:render', pinned: true } });
});

test('the pinned validator closes it if it finds something', async () => {
  const gate = await gateOf({ Kptfile: validators(KUBECONFORM), 'a.yaml': `${GOOD}data: 5\n` });
  expect(gate).toMatchObject({ state: 'NotTrue', condition: { status: 'False' } });
});

describe('a replacement of it opens no gate', () => {
  test.each([
    ['a no-op of its name', '    - name: kubeconform\n      image: starlark:v0.5.5\n      configPath: noop.yaml\n'],
    ['another version', '    - image: kubeconform:v0.1.0\n'],
    ['no version', '    - image: kubeconform\n'],
    ['another tag in the entry', `${KUBECONFORM}      tag: v0.0.1\n`],
    ['another configuration', `${KUBECONFORM}      configMap: { skip_kinds: ConfigMap }\n`],
    ['a selector that leaves out what is wrong', `${KUBECONFORM}      selectors: [{ kind: Secret }]\n`],
    ['an exclusion', `${KUBECONFORM}      exclude: [{ kind: ConfigMap }]\n`],
  ])('%s', async (_what, entry) => {
    const gate = await gateOf({ Kptfile: validators(entry), 'a.yaml': GOOD, 'noop.yaml': NO_OP });
    expect(['Missing', 'NotTrue', 'NotAllowed']).toContain(gate?.state);
  });

  test('in a nested package it gets only that package', async () => {
    const files = { Kptfile: HEAD, 'a.yaml': `${GOOD}data: 5\n`, 'sub/Kptfile': validators(KUBECONFORM) };
    expect((await gateOf(files))?.state).toBe('Missing');
  });

  test('in a pushed package, which the controller renders', async () => {
    const { store, renderer } = await open();
    const git = await openRepository(scratch.path);
    const entry = '    - name: kubeconform\n      image: starlark:v0.5.5\n      configPath: noop.yaml\n';
    const files = { 'app/Kptfile': validators(entry), 'app/noop.yaml': NO_OP, 'app/a.yaml': `${GOOD}data: 5\n` };
    await commitFiles(git, files, scratch.clock.now(), { branch: 'drafts/app/v1', from: 'refs/heads/main' });
    await git.close();
    await store.repository('packages').refresh();
    const name = 'packages.app.v1';
    const { files: all } = await store.content(name);
    const { validatorConditions, pinnedValidators } = policy;
    const signal = new AbortController().signal;
    const request = { files: all, namespace: 'default', validatorConditions, pinnedValidators, signal };
    const rendering = await renderer.render(request);
    expect(rendering?.conditions).toContainEqual(expect.objectContaining({ type: TYPE, status: 'True' }));
    await store.change(name, { ...(rendering === undefined ? {} : { rendering }) }, robot);
    expect((await store.evaluate(name)).gates).toMatchObject([{ state: 'Missing' }]);
  });
});

test("without a pin all contributors count as issuers of their functions' conditions", async () => {
  policy = {
    ...policy,
    pinnedValidators: [],
    givers: [{ conditionType: TYPE, actors: ['anna', 'group:sec'], policy: 'valid' }],
  };
  const { store } = await open();
  const { name } = await store.create(
    'packages',
    { package: 'app', workspace: 'v1', source: { type: 'init', files: new Map([['Kptfile', Buffer.from(HEAD)]]) } },
    anna,
  );
  const files = new Map([['Kptfile', Buffer.from(validators('    - image: kubeconform\n'))]]);
  await store.change(name, { files }, anna);
  const gate = async () => (await store.evaluate(name)).gates[0];
  expect(await gate()).toMatchObject({ state: 'Open', verdict: { issuers: [{ name: 'anna' }] } });
  const edit = (text: string, context: typeof anna) =>
    store.change(name, { files: new Map([['a.yaml', Buffer.from(text)]]) }, context);
  const sec = { ...anna, actor: { name: 'sarah', groups: ['sec'] } };
  await edit(GOOD, sec);
  expect(await gate()).toMatchObject({ state: 'Open', verdict: { issuers: [{ name: 'anna' }, { name: 'sarah' }] } });
  await edit(`${GOOD}data: {}\n`, { ...anna, actor: { name: 'mallory' } });
  expect((await gate())?.state).not.toBe('Open');
});

test('a function of an upstream package does not request the approval of a clone', async () => {
  const { store } = await open();
  const REQUEST = [
    'apiVersion: fn.kpt.dev/v1alpha1',
    'kind: StarlarkRun',
    'metadata:',
    '  name: request',
    '  annotations: { config.kubernetes.io/local-config: "true" }',
    'source: |',
    '  for r in ctx.resource_list["items"]:',
    '    if r["kind"] == "Kptfile":',
    '      r["metadata"]["annotations"].update({"approval.nephio.org/policy": "always", "team": "a"})',
    '',
  ].join('\n');
  const files = {
    Kptfile: `${HEAD}pipeline:\n  mutators:\n    - image: starlark:v0.5.5\n      configPath: request.yaml\n`,
    'request.yaml': REQUEST,
  };
  policy = DEFAULT_POLICY;
  const data = new Map(Object.entries(files).map(([path, text]) => [path, Buffer.from(text)]));
  const upstream = await store.create(
    'packages',
    { package: 'app', workspace: 'v1', source: { type: 'init', files: data } },
    anna,
  );
  await store.update(upstream.name, { action: 'propose' }, anna);
  await store.update(upstream.name, { action: 'approve' }, anna);
  const warnings: string[] = [];
  const clone = await store.create(
    'packages',
    { package: 'clone', workspace: 'v1', source: { type: 'clone', upstream: { revision: upstream.name } } },
    { ...anna, warn: (text) => warnings.push(text) },
  );
  const text = () => store.content(clone.name).then((content) => content.files.get('Kptfile')?.toString());
  expect(await text()).toContain('team: a');
  expect(await text()).not.toContain('approval.nephio.org');
  expect(warnings.join()).toContain('functions cannot request approvals');
  await store.change(clone.name, { files: new Map([['a.yaml', Buffer.from(GOOD)]]) }, anna);
  expect(await text()).not.toContain('approval.nephio.org');
});
