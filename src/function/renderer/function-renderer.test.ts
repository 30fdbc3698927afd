import { describe, expect, test } from 'vitest';
import type { RenderStatus } from '../../../kptfile-schema/index.ts';
import { anna, type Scratch, scratchRepository } from '../../../test/support/scratch-repository.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { DEFAULT_POLICY, type EffectivePolicy } from '../../package/model/policy/policy.ts';
import { builtIns } from '../built-in/index.ts';
import { Catalog } from '../catalog/catalog.ts';
import type { ExternalRunner } from '../external/external-runner.ts';
import type { FunctionRules } from '../model/function-rules.ts';
import { DEFAULT_FUNCTION_LIMITS, type PipelineRunner } from '../model/pipeline.ts';
import { runPipeline } from '../pipeline/run-pipeline.ts';
import { FunctionRenderer } from './function-renderer.ts';

const HEAD = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\n';
const LABELS = 'pipeline:\n  mutators:\n    - image: set-labels:v0.2.0\n      configMap:\n        tier: web\n';
const CONFIG_MAP = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n';

/** A renderer in this process, and how often it ran a pipeline. */
async function rendererOf(rules: FunctionRules = [], external?: ExternalRunner, { keepsRenderStatus = false } = {}) {
  const catalog = new Catalog(builtIns);
  const at = { runs: 0, rules };
  const runner: PipelineRunner = {
    run: (input, signal) => {
      at.runs += 1;
      return runPipeline(input, { catalog, external, limits: DEFAULT_FUNCTION_LIMITS, signal });
    },
    close: async () => undefined,
  };
  const renderer = new FunctionRenderer({ runner, catalog, rules: () => at.rules, keepsRenderStatus });
  return { at, renderer };
}

/** Makes a draft of these files in a store that renders. */
async function drafted(
  scratch: Scratch,
  files: Readonly<Record<string, string>>,
  policy: Partial<EffectivePolicy> = {},
  external?: ExternalRunner,
) {
  const { at, renderer } = await rendererOf([], external);
  const { store } = await scratch.open({ renderer, policyFor: () => ({ ...DEFAULT_POLICY, ...policy }) });
  const data = new Map(Object.entries(files).map(([path, text]) => [path, Buffer.from(text)]));
  const wanted = { package: 'app', workspace: 'v1', source: { type: 'init', files: data } } as const;
  const { name } = await store.create('packages', wanted, anna);
  const file = async (path: string) => (await store.content(name)).files.get(path)?.toString() ?? '';
  /** What the functions did at the last edit. */
  const last: { status?: RenderStatus } = {};
  const onRendered = (status: RenderStatus) => {
    last.status = status;
  };
  const edit = (path: string, text: string) =>
    store.change(name, { files: new Map([[path, Buffer.from(text)]]), onRendered }, anna);
  const commits = async () => Number(await scratch.git('rev-list', '--count', `main..${store.get(name).ref}`));
  return { at, renderer, store, name, file, edit, commits, last };
}

/** A Kptfile that has `status.renderStatus` keeps it current. */
const KEEPS_STATUS = 'status:\n  renderStatus: {}\n';

describe('what is written through Sluice', () => {
  test('is rendered in the same commit, from the first one on', async () => {
    await using scratch = await scratchRepository();
    const draft = await drafted(scratch, { Kptfile: `${HEAD}${LABELS}`, 'a.yaml': CONFIG_MAP });
    expect(await draft.commits()).toBe(1);
    expect(await draft.file('a.yaml')).toBe(`${CONFIG_MAP}  labels:\n    tier: web\n`);
    expect(await draft.file('Kptfile')).toMatch(/ - type: Rendered\n +status: "True"\n +reason: RenderSuccess\n/);
    const { record } = await draft.store.evaluate(draft.name);
    expect(record.verdicts).toMatchObject([{ type: 'Rendered', by: 'controller:render' }]);
    await draft.edit('b.yaml', CONFIG_MAP.replace('name: a', 'name: b'));
    expect(await draft.commits()).toBe(2);
    expect(await draft.file('b.yaml')).toContain('tier: web');
    // What rendering made comes back as it was: nothing differs.
    await draft.edit('a.yaml', CONFIG_MAP);
    expect(await draft.commits()).toBe(2);
  });

  test('is kept if it cannot be rendered, with the reason', async () => {
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
    expect(kptfile?.status?.renderStatus).toBeUndefined();
    const { validationSteps = [], errorSummary } = draft.last.status ?? {};
    expect(errorSummary).toContain('kubeconform');
    expect(JSON.stringify(validationSteps)).toContain('a.yaml');
    await draft.edit('a.yaml', CONFIG_MAP);
    expect(draft.last.status?.errorSummary).toBeUndefined();
  });

  test('a nested Kptfile that cannot be read is reported, and nothing is lost', async () => {
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

  test('a function that could not be run is tried again', async () => {
    await using scratch = await scratchRepository();
    const kptfile = `${HEAD}pipeline:\n  mutators:\n    - image: registry.example.com/other:v1\n`;
    const { at, renderer, store, name } = await drafted(scratch, { Kptfile: kptfile });
    const { files } = await store.content(name);
    const signal = new AbortController().signal;
    const { runs } = at;
    const output = await renderer.render({ files, namespace: 'default', validatorConditions: new Map(), signal });
    expect(output).toMatchObject({ unavailable: true, requeueAfter: 300_000 });
    expect(output?.failure).toContain('registry.example.com/other');
    expect(at.runs).toBe(runs + 1);
  });

  test('a repeated failure whose message differs only in numbers changes nothing', async () => {
    await using scratch = await scratchRepository();
    let port = 40_000;
    const external: ExternalRunner = {
      refusal: async () => `read udp 127.0.0.1:${port++}: i/o timeout, sluice-fn-${port}beef`,
      run: () => Promise.reject(new Error('not reached')),
    };
    const validator = '    - image: registry.example.com/check:v1\n';
    const asked = { validatorConditions: new Map([['check', 'example.com/Checked']]) };
    for (const rest of ['', '  mutators:\n    - image: registry.example.com/other:v1\n']) {
      const kptfile = `${HEAD}pipeline:\n  validators:\n${validator}${rest}`;
      const draft = await drafted(scratch, { Kptfile: kptfile }, asked, external);
      await draft.edit('a.yaml', CONFIG_MAP);
      await draft.edit('a.yaml', `${CONFIG_MAP}# another\n`);
      const { kptfile: before } = draft.store.get(draft.name);
      const { files } = await draft.store.content(draft.name);
      const signal = new AbortController().signal;
      const output = await draft.renderer.render({ files, namespace: 'default', signal, ...asked });
      expect(output?.kptfile).toEqual([]);
      expect(output?.conditions).toEqual(before?.status?.conditions);
      await draft.store.change(draft.name, { kptfile: [{ op: 'addGate', conditionType: 'x.io/A' }] }, anna);
      await draft.edit('Kptfile', kptfile.replaceAll(':v1', ':v2'));
      expect(JSON.stringify(draft.store.get(draft.name).kptfile?.status)).not.toContain(':v1');
      await draft.store.update(draft.name, { action: 'delete' }, anna);
    }
  });
});

test('a validator opens no gate while the package cannot be rendered', async () => {
  await using scratch = await scratchRepository();
  const failing = SCRIPT.replace(/source:[\s\S]*/, 'source: fail("no")\n');
  const kptfile = `${HEAD}pipeline:\n  validators:\n    - image: kubeconform\n    - image: starlark\n      configPath: review.yaml\n`;
  const requiredGates = [{ conditionType: 'example.com/Valid', approveOnly: false, policy: 'p' }];
  const asked = { requiredGates, validatorConditions: new Map([['kubeconform', 'example.com/Valid']]) };
  const draft = await drafted(scratch, { Kptfile: kptfile, 'review.yaml': failing }, asked);
  await draft.edit('a.yaml', CONFIG_MAP);
  const gates = async () => (await draft.store.evaluate(draft.name)).gates;
  expect(await gates()).toMatchObject([
    { type: 'example.com/Valid', state: 'NotTrue', condition: { status: 'Unknown' } },
    { type: 'Rendered', state: 'NotTrue' },
  ]);
  await draft.edit('review.yaml', failing.replace('fail("no")', 'ctx'));
  expect(await gates()).toMatchObject([{ state: 'Open' }]);
});

test('a package cannot write conditions of Sluice', async () => {
  await using scratch = await scratchRepository();
  const kptfile = `${HEAD}pipeline:\n  mutators:\n    - image: starlark\n      configPath: review.yaml\n`;
  const script = SCRIPT.replace('example.com/Review', 'sluice.dev/PipelineSettled');
  const draft = await drafted(scratch, { Kptfile: kptfile, 'review.yaml': script });
  const warnings: string[] = [];
  const context = { ...anna, warn: (text: string) => warnings.push(text) };
  await draft.store.change(draft.name, { files: new Map([['a.yaml', Buffer.from(CONFIG_MAP)]]) }, context);
  expect(warnings).toEqual([expect.stringContaining('only Sluice itself sets sluice.dev/PipelineSettled')]);
  expect(await draft.file('Kptfile')).not.toContain('PipelineSettled');
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

test('a package cannot open a gate by its own functions where a policy names the issuers of the condition', async () => {
  await using scratch = await scratchRepository();
  const kptfile = `${HEAD}pipeline:\n  mutators:\n    - image: starlark\n      configPath: review.yaml\n`;
  const givers = [{ conditionType: 'example.com/Review', actors: ['boris'], policy: 'review' }];
  const requiredGates = [{ conditionType: 'example.com/Review', approveOnly: false, policy: 'review' }];
  const draft = await drafted(scratch, { Kptfile: kptfile, 'review.yaml': SCRIPT }, { givers, requiredGates });
  const warnings: string[] = [];
  const context = { ...anna, warn: (text: string) => warnings.push(text) };
  await draft.store.change(draft.name, { files: new Map([['a.yaml', Buffer.from(CONFIG_MAP)]]) }, context);
  expect(warnings).toEqual([
    'controller:render: policy review permits only boris to set example.com/Review; anna may have changed the functions of the package, and no policy pins them (validatorConditions)',
  ]);
  expect(await draft.file('Kptfile')).not.toContain('example.com/Review');
  expect((await draft.store.evaluate(draft.name)).gates).toMatchObject([{ state: 'Missing' }]);
  await expect(draft.store.update(draft.name, { action: 'propose' }, anna)).rejects.toThrow(/example.com\/Review/);

  // Where no policy says so, anybody may give it, and so may a function; it counts for this content.
  await using other = await scratchRepository();
  const free = await drafted(other, { Kptfile: kptfile, 'review.yaml': SCRIPT }, { requiredGates });
  await free.edit('a.yaml', CONFIG_MAP);
  expect((await free.store.evaluate(free.name)).gates).toMatchObject([
    { state: 'Open', verdict: { by: 'controller:render' } },
  ]);
});

test('a validator that finds thousands of faults does not make the Kptfile too large to be read', async () => {
  await using scratch = await scratchRepository();
  const script = SCRIPT.replace(
    /source:[\s\S]*/,
    'source: |\n  ctx.resource_list["results"] = [{"message": "m" * 3000 + str(i), "severity": "warning"} for i in range(900)]\n',
  );
  const kptfile = `${HEAD}pipeline:\n  validators:\n    - image: starlark\n      configPath: review.yaml\n${KEEPS_STATUS}`;
  const draft = await drafted(scratch, { Kptfile: kptfile, 'review.yaml': script });
  await draft.edit('a.yaml', CONFIG_MAP);
  const text = await draft.file('Kptfile');
  expect(text.length).toBeLessThan(100_000);
  const { kptfile: read, problem } = draft.store.get(draft.name);
  expect(problem).toBeUndefined();
  expect(read?.status?.renderStatus?.validationSteps?.[0]?.results?.at(-1)?.message).toMatch(/^and \d+ more$/);
});

describe('status.renderStatus', () => {
  const broken = `${CONFIG_MAP}data: 5\n`;
  const pipeline = 'pipeline:\n  validators:\n    - image: kubeconform\n';

  test('is written where the Kptfile has it already, and given to the writer in any case', async () => {
    await using scratch = await scratchRepository();
    const without = await drafted(scratch, { Kptfile: `${HEAD}${pipeline}`, 'a.yaml': CONFIG_MAP });
    await without.edit('a.yaml', broken);
    expect(await without.file('Kptfile')).not.toContain('renderStatus');
    expect(without.last.status?.errorSummary).toContain('kubeconform');
    await using other = await scratchRepository();
    const kept = await drafted(other, { Kptfile: `${HEAD}${pipeline}${KEEPS_STATUS}`, 'a.yaml': CONFIG_MAP });
    await kept.edit('a.yaml', broken);
    expect(kept.store.get(kept.name).kptfile?.status?.renderStatus).toEqual(kept.last.status);
  });

  test('is written into every Kptfile if the renderer keeps it', async () => {
    const { renderer } = await rendererOf([], undefined, { keepsRenderStatus: true });
    const files = new Map([
      ['Kptfile', Buffer.from(`${HEAD}${pipeline}`)],
      ['a.yaml', Buffer.from(CONFIG_MAP)],
    ]);
    const { signal } = new AbortController();
    const rendering = await renderer.render({ files, namespace: 'default', validatorConditions: new Map(), signal });
    expect(rendering?.kptfile).toEqual([{ op: 'setRenderStatus', renderStatus: rendering?.renderStatus }]);
  });

  test('without it, the text of what cannot be run stays as it is while only ports and times differ', async () => {
    await using scratch = await scratchRepository();
    let port = 1000;
    const external: ExternalRunner = {
      refusal: async () => undefined,
      run: async () => {
        port += 1;
        throw new SluiceError('Unavailable', `no answer from 127.0.0.1:${port}`);
      },
    };
    const kptfile = `${HEAD}pipeline:\n  mutators:\n    - image: example.org/other:v1\n`;
    const draft = await drafted(scratch, { Kptfile: kptfile, 'a.yaml': CONFIG_MAP }, {}, external);
    const before = await draft.file('Kptfile');
    expect(before).toContain('127.0.0.1:1001');
    await draft.edit('a.yaml', `${CONFIG_MAP}data: {}\n`);
    expect(port).toBe(1002);
    expect(await draft.file('Kptfile')).toBe(before);
  });
});
