import { describe, expect, test } from 'vitest';
import { anna, type Scratch, scratchRepository } from '../../test/support/scratch-repository.ts';
import { DEFAULT_POLICY, type EffectivePolicy } from '../package/policy.ts';
import { Catalog } from './catalog/catalog.ts';
import type { FunctionRules } from './catalog/function-rules.ts';
import { loadPacks } from './catalog/load-packs.ts';
import { FunctionRenderer } from './function-renderer.ts';
import { DEFAULT_FUNCTION_LIMITS, type PipelineRunner } from './pipeline/pipeline.ts';
import { runPipeline } from './pipeline/run-pipeline.ts';

const HEAD = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\n';
const LABELS = 'pipeline:\n  mutators:\n    - image: set-labels:v0.2.0\n      configMap:\n        tier: web\n';
const CONFIG_MAP = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n';

/** A renderer in this process, and how often it ran a pipeline. */
async function rendererOf(rules: FunctionRules = []) {
  const catalog = new Catalog(await loadPacks([]));
  const at = { runs: 0, rules };
  const runner: PipelineRunner = {
    run: (input, signal) => {
      at.runs += 1;
      return runPipeline(input, { catalog, external: undefined, limits: DEFAULT_FUNCTION_LIMITS, signal });
    },
    close: async () => undefined,
  };
  const renderer = new FunctionRenderer({ runner, catalog, rules: () => at.rules });
  return { at, renderer };
}

/** Makes a draft of these files in a store that renders. */
async function drafted(
  scratch: Scratch,
  files: Readonly<Record<string, string>>,
  policy: Partial<EffectivePolicy> = {},
) {
  const { at, renderer } = await rendererOf();
  const { store } = await scratch.open({ renderer, policyFor: () => ({ ...DEFAULT_POLICY, ...policy }) });
  const data = new Map(Object.entries(files).map(([path, text]) => [path, Buffer.from(text)]));
  const wanted = { package: 'app', workspace: 'v1', source: { type: 'init', files: data } } as const;
  const { name } = await store.create('packages', wanted, anna);
  const file = async (path: string) => (await store.content(name)).files.get(path)?.toString() ?? '';
  const edit = (path: string, text: string) =>
    store.change(name, { files: new Map([[path, Buffer.from(text)]]) }, anna);
  const commits = async () => Number(await scratch.git('rev-list', '--count', `main..${store.get(name).ref}`));
  return { at, renderer, store, name, file, edit, commits };
}

describe('what is written through Sluice', () => {
  test('is rendered in the same commit, from the first one on', async () => {
    await using scratch = await scratchRepository();
    const draft = await drafted(scratch, { Kptfile: `${HEAD}${LABELS}`, 'a.yaml': CONFIG_MAP });
    expect(await draft.commits()).toBe(1);
    expect(await draft.file('a.yaml')).toBe(`${CONFIG_MAP}  labels:\n    tier: web\n`);
    expect(await draft.file('Kptfile')).toMatch(/ - type: Rendered\n +status: "True"\n +reason: RenderSuccess\n/);
    const { record } = await draft.store.judge(draft.name);
    expect(record.verdicts).toMatchObject([{ type: 'Rendered', by: 'controller:render' }]);
    await draft.edit('b.yaml', CONFIG_MAP.replace('name: a', 'name: b'));
    expect(await draft.commits()).toBe(2);
    expect(await draft.file('b.yaml')).toContain('tier: web');
    // What rendering made comes back as it was: nothing differs.
    await draft.edit('a.yaml', CONFIG_MAP);
    expect(await draft.commits()).toBe(2);
  });

  test('is kept if it cannot be rendered, and says why', async () => {
    await using scratch = await scratchRepository();
    const draft = await drafted(scratch, { Kptfile: `${HEAD}${LABELS}`, 'a.yaml': CONFIG_MAP });
    const broken = `${HEAD}${LABELS}  validators:\n    - image: kubeconform\n`;
    await draft.edit('Kptfile', broken);
    await draft.edit('a.yaml', `${CONFIG_MAP}data: 5\n`);
    expect(await draft.file('a.yaml')).toBe(`${CONFIG_MAP}data: 5\n`);
    const { kptfile } = draft.store.get(draft.name);
    expect(kptfile?.status?.conditions).toMatchObject([
      { type: 'Rendered', status: 'False', reason: 'RenderFailed', message: expect.stringContaining('kubeconform') },
    ]);
    const { validationSteps = [], errorSummary } = kptfile?.status?.renderStatus ?? {};
    expect(errorSummary).toContain('kubeconform');
    expect(JSON.stringify(validationSteps)).toContain('a.yaml');
    await draft.edit('a.yaml', CONFIG_MAP);
    expect(draft.store.get(draft.name).kptfile?.status?.renderStatus?.errorSummary).toBeUndefined();
  });

  test('a nested Kptfile that cannot be read is told, and nothing is lost', async () => {
    await using scratch = await scratchRepository();
    const draft = await drafted(scratch, { Kptfile: `${HEAD}${LABELS}`, 'db/Kptfile': '<<<<<<< HEAD\n' });
    expect(await draft.file('db/Kptfile')).toBe('<<<<<<< HEAD\n');
    const request = { namespace: 'default', validatorConditions: new Map(), signal: new AbortController().signal };
    const { files } = await draft.store.content(draft.name);
    const rendering = await draft.renderer.render({ ...request, files });
    expect(rendering?.failure).toContain('db/Kptfile');
  });
});

describe('answers from memory', () => {
  test('conditions run nothing again; content, rules and functions that read conditions do', async () => {
    await using scratch = await scratchRepository();
    const draft = await drafted(scratch, { Kptfile: `${HEAD}${LABELS}`, 'a.yaml': CONFIG_MAP });
    const { at, renderer, store, name } = draft;
    const render = async () => {
      const { files } = await store.content(name);
      const signal = new AbortController().signal;
      return renderer.render({ files, namespace: 'default', validatorConditions: new Map(), signal });
    };
    const first = await render();
    const { runs } = at;
    expect(first?.edits?.size).toBe(0);
    // What functions are glad to have done differs at each run; that is no reason to write it down again.
    expect(first?.kptfile).toEqual([]);
    await store.change(name, { conditions: [{ type: 'tested', status: 'True' }] }, anna);
    await render();
    expect(at.runs).toBe(runs);
    at.rules = [{ image: 'set-labels', action: { type: 'forbid', message: 'not here' } }];
    expect((await render())?.failure).toContain('not here');
    expect(at.runs).toBe(runs + 1);
    at.rules = [];
    await render();
    expect(at.runs).toBe(runs + 1);
    await draft.edit('c.yaml', CONFIG_MAP.replace('name: a', 'name: c'));
    expect(at.runs).toBe(runs + 2);
  });

  test('what could not be run is tried again', async () => {
    await using scratch = await scratchRepository();
    const kptfile = `${HEAD}pipeline:\n  mutators:\n    - image: registry.example.com/other:v1\n`;
    const { at, renderer, store, name } = await drafted(scratch, { Kptfile: kptfile });
    const { files } = await store.content(name);
    const signal = new AbortController().signal;
    const { runs } = at;
    const said = await renderer.render({ files, namespace: 'default', validatorConditions: new Map(), signal });
    expect(said).toMatchObject({ unavailable: true, requeueAfter: 300_000 });
    expect(said?.failure).toContain('registry.example.com/other');
    expect(at.runs).toBe(runs + 1);
  });
});

const SCRIPT = `apiVersion: fn.kpt.dev/v1alpha1
kind: StarlarkRun
metadata:
  name: review
  annotations: { config.kubernetes.io/local-config: "true" }
source: |
  for each in ctx.resource_list["items"]:
    if each["kind"] == "Kptfile":
      each["status"] = {"conditions": [{"type": "example.com/Review", "status": "True"}]}
`;

test('a package cannot open a gate by its own functions where a policy says who gives the condition', async () => {
  await using scratch = await scratchRepository();
  const kptfile = `${HEAD}pipeline:\n  mutators:\n    - image: starlark\n      configPath: review.yaml\n`;
  const givers = [{ conditionType: 'example.com/Review', actors: ['boris'], policy: 'review' }];
  const requiredGates = [{ conditionType: 'example.com/Review', approveOnly: false, policy: 'review' }];
  const draft = await drafted(scratch, { Kptfile: kptfile, 'review.yaml': SCRIPT }, { givers, requiredGates });
  const warnings: string[] = [];
  const context = { ...anna, warn: (text: string) => warnings.push(text) };
  await draft.store.change(draft.name, { files: new Map([['a.yaml', Buffer.from(CONFIG_MAP)]]) }, context);
  expect(warnings).toEqual(['controller:render: policy review lets only boris give example.com/Review']);
  expect(await draft.file('Kptfile')).not.toContain('example.com/Review');
  expect((await draft.store.judge(draft.name)).gates).toMatchObject([{ state: 'Missing' }]);
  await expect(draft.store.transition(draft.name, { action: 'propose' }, anna)).rejects.toThrow(/example.com\/Review/);

  // Where no policy says so, anybody may give it, and so may a function; it counts for this content.
  await using other = await scratchRepository();
  const free = await drafted(other, { Kptfile: kptfile, 'review.yaml': SCRIPT }, { requiredGates });
  await free.edit('a.yaml', CONFIG_MAP);
  expect((await free.store.judge(free.name)).gates).toMatchObject([
    { state: 'Open', verdict: { by: 'controller:render' } },
  ]);
});
