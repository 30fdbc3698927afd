import { expect, test } from 'vitest';
import type { PipelineEvent } from '../model/pipeline.ts';
import { Resource } from '../resource/resource.ts';
import { configMap, externalFunction, kptfile, render, testFunction, testFunctions } from './testing.ts';

const mark = (word: string, more = '') => `    - image: mark\n      configMap: {word: ${word}}\n${more}`;
const trailOf = (text: string | null | undefined) => /trail: "?([^"\n]*)"?/.exec(text ?? '')?.[1];

test('nested packages run first, each in the order of its paths, and the package around them gets their results', async () => {
  const { edits, steps, failure } = await render({
    Kptfile: kptfile(`  mutators:\n${mark('R')}`),
    'a.yaml': configMap('a'),
    'z/Kptfile': kptfile(`  mutators:\n${mark('Z')}`),
    'z/x.yaml': configMap('zx'),
    'b/Kptfile': kptfile(`  mutators:\n${mark('B')}${mark('C')}`),
    'b/x.yaml': configMap('bx'),
    'b/deep/folder/Kptfile': kptfile(`  mutators:\n${mark('D')}`),
    'b/deep/folder/x.yaml': configMap('dx'),
    'b/other/x.yaml': configMap('ox'),
  });
  expect(failure).toBeUndefined();
  expect(steps.map(({ packagePath }) => packagePath)).toEqual(['b/deep/folder', 'b', 'b', 'z', '']);
  expect(trailOf(edits.get('a.yaml'))).toBe('R');
  expect(trailOf(edits.get('z/x.yaml'))).toBe('ZR');
  expect(trailOf(edits.get('b/x.yaml'))).toBe('BCR');
  expect(trailOf(edits.get('b/other/x.yaml'))).toBe('BCR');
  expect(trailOf(edits.get('b/deep/folder/x.yaml'))).toBe('DBCR');
  expect(trailOf(edits.get('b/Kptfile'))).toBe('BCR');
});

test('kpt.dev/bfs-rendering on the root package runs the packages from the outside in', async () => {
  const { edits, steps } = await render({
    Kptfile: kptfile(`  mutators:\n${mark('R')}`, 'kpt.dev/bfs-rendering: "true"'),
    'b/Kptfile': kptfile(`  mutators:\n${mark('B')}`),
    'b/deep/Kptfile': kptfile(`  mutators:\n${mark('D')}`),
    'b/deep/x.yaml': configMap('dx'),
    'c/Kptfile': kptfile(`  mutators:\n${mark('C')}`),
  });
  expect(steps.map(({ packagePath }) => packagePath)).toEqual(['', 'b', 'c', 'b/deep']);
  expect(trailOf(edits.get('b/deep/x.yaml'))).toBe('RBD');
});

test('functions cannot request approvals: the annotations of Kptfiles stay as they were, those of packages within too', async () => {
  const key = 'approval.nephio.org/policy';
  const request = testFunction('request', ({ items }) => {
    for (const item of items) {
      item.set(['metadata', 'annotations', key], 'always');
      item.set(['metadata', 'annotations', 'other'], 'x');
    }
    items.push(Resource.parse(`${kptfile('', `${key}: always`)}`, { file: 'new/Kptfile', index: 0 }));
  });
  const {
    edits,
    ignored = [],
    failure,
  } = await render(
    {
      Kptfile: kptfile('  mutators:\n    - image: request\n'),
      'a/Kptfile': kptfile('', `${key}: initial`),
      'a.yaml': configMap('a'),
    },
    { functions: [request] },
  );
  expect(failure).toBeUndefined();
  expect(edits.get('Kptfile')).not.toContain(key);
  expect(edits.get('Kptfile')).toContain('other: x');
  expect(edits.get('a/Kptfile')).toContain(`${key}: initial`);
  expect(edits.get('new/Kptfile')).not.toContain(key);
  expect(edits.get('a.yaml')).toContain(`${key}: always`);
  expect(ignored.map((note) => note.slice(0, note.indexOf(':')))).toEqual(['Kptfile', 'a/Kptfile', 'new/Kptfile']);
  expect(ignored[0]).toContain(`what functions changed in ${key} is ignored: functions cannot request approvals`);
});

test('functions know files by paths below the package that names them, its own resources first', async () => {
  const { steps, edits } = await render({
    Kptfile: kptfile('  mutators:\n    - image: report-files\n'),
    'z.yaml': `${configMap('one')}---\n${configMap('two')}`,
    'a/Kptfile': kptfile('  mutators:\n    - image: report-files\n    - image: refuse\n'),
    'a/in/x.yaml': configMap('x'),
    'notes.txt': 'not for functions',
  });
  expect(steps.map(({ result }) => result.results?.[0]?.message)).toEqual([
    'Kptfile#0 in/x.yaml#0',
    undefined,
    'Kptfile#0 z.yaml#0 z.yaml#1 a/Kptfile#0 a/in/x.yaml#0',
  ]);
  expect(edits.size).toBe(0);
});

test('findings of nested packages name files by paths below the root package', async () => {
  const { steps, failure } = await render({
    Kptfile: kptfile('  mutators: []\n'),
    'a/Kptfile': kptfile('  validators:\n    - image: refuse\n'),
    'a/web.yaml': 'apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  namespace: shop\n',
  });
  expect(steps[0]?.result.errorResults?.[0]?.file).toEqual({ path: 'a/web.yaml', index: 0 });
  expect(failure).toBe(
    'a/Kptfile: pipeline.validators[0], function "refuse": a/web.yaml: Deployment shop/web: kind: no deployments',
  );
});

test('mutators run before validators, and the first failure ends the pipeline', async () => {
  const { edits, steps, failure } = await render({
    Kptfile: kptfile(
      `  validators:\n    - image: refuse\n      name: no deployments\n    - image: report-files\n  mutators:\n${mark('M')}`,
    ),
    'web.yaml': 'apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n',
  });
  expect(steps.map(({ list, result }) => [list, result.name, result.image, result.exitCode])).toEqual([
    ['mutators', undefined, 'ghcr.io/kptdev/krm-functions-catalog/mark:latest', 0],
    ['validators', 'no deployments', 'ghcr.io/kptdev/krm-functions-catalog/refuse:latest', 1],
  ]);
  expect(steps[1]?.result.results).toEqual(steps[1]?.result.errorResults);
  expect(failure).toContain('function "no deployments": web.yaml: Deployment web: kind: no deployments');
  expect(edits.size).toBe(0);
});

test('a validator changes nothing, not even the input of a later validator', async () => {
  const { edits, steps } = await render({
    Kptfile: kptfile(
      `  validators:\n${mark('V')}    - image: make\n      configMap: {name: made}\n    - image: remove\n      configMap: {name: a}\n    - image: report-files\n`,
    ),
    'a.yaml': configMap('a'),
  });
  expect(steps.at(-1)?.result.results?.[0]?.message).toBe('Kptfile#0 a.yaml#0');
  expect(edits.size).toBe(0);
});

test('new resources get files below the package whose function made them, removed ones lose theirs', async () => {
  const { edits } = await render({
    Kptfile: kptfile('  mutators: []\n'),
    'a/Kptfile': kptfile(
      `  mutators:\n    - image: make\n      configMap: {name: made}\n    - image: make\n      configMap: {name: again, file: x.yaml}\n    - image: remove\n      configMap: {name: gone}\n    - image: report-files\n`,
    ),
    'a/x.yaml': configMap('x'),
    'a/gone.yaml': configMap('gone'),
  });
  expect([...edits.keys()].sort()).toEqual(['a/configmap_made.yaml', 'a/gone.yaml', 'a/x.yaml']);
  expect(edits.get('a/gone.yaml')).toBeNull();
  expect(edits.get('a/x.yaml')).toBe(`${configMap('x')}---\n${configMap('again')}`);
});

test('later functions get the resources that a function creates', async () => {
  const { edits } = await render({
    Kptfile: kptfile(`  mutators:\n    - image: make\n      configMap: {name: made}\n${mark('M')}`),
  });
  expect(edits.get('configmap_made.yaml')).toBe(configMap('made', '  annotations:\n    trail: M\n'));
});

test('after a failure the edits so far are kept if the root package requests it, without those of the function that failed', async () => {
  const half = testFunction('half', ({ items }) => {
    for (const item of items) item.set(['metadata', 'annotations', 'trail'], 'half');
    throw new Error('broke');
  });
  const files = {
    Kptfile: kptfile('  mutators:\n    - image: half\n', 'kpt.dev/save-on-render-failure: "true"'),
    'a/Kptfile': kptfile(`  mutators:\n${mark('A')}`),
    'a/x.yaml': configMap('x'),
  };
  const functions = [...testFunctions, half];
  const { edits, failure } = await render(files, { functions });
  expect(failure).toContain('it crashed: broke');
  expect(trailOf(edits.get('a/x.yaml'))).toBe('A');
  expect(edits.has('Kptfile')).toBe(false);
  const nested = await render({ ...files, Kptfile: kptfile('  mutators:\n    - image: half\n') }, { functions });
  expect(nested.edits.size).toBe(0);
});

test('a validator with a condition of its own fails without failing the pipeline', async () => {
  const files = {
    Kptfile: kptfile(
      '  validators:\n    - image: gcr.io/kpt-fn/refuse:v1\n      configPath: config.yaml\n    - image: refuse\n      name: second\n    - image: example.com/unknown:v1\n',
    ),
    'config.yaml': configMap(
      'config',
      '  annotations:\n    sluice.dev/validator-condition: shop.example/NoDeployments\n',
    ),
    'web.yaml': 'apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n',
  };
  const validatorConditions = new Map([
    ['second', 'Second'],
    ['refuse', 'Third'],
    ['unknown', 'Fourth'],
  ]);
  const { steps, failure } = await render(files, { input: { validatorConditions } });
  expect(failure).toBeUndefined();
  expect(steps.map(({ conditionType, unavailable, result }) => [conditionType, unavailable, result.exitCode])).toEqual([
    ['shop.example/NoDeployments', undefined, 1],
    ['Second', undefined, 1],
    ['Fourth', true, 1],
  ]);
  const without = await render(files, { input: { validatorConditions: new Map() } });
  expect(without.failure).toContain('pipeline.validators[1], function "second"');
});

test('a condition type that no function may issue is refused', async () => {
  for (const type of ['Rendered', 'two words', `a${'b'.repeat(400)}`]) {
    const { failure } = await render({
      Kptfile: kptfile('  validators:\n    - image: report-files\n      configPath: config.yaml\n'),
      'config.yaml': configMap('config', `  annotations:\n    sluice.dev/validator-condition: ${type}\n`),
    });
    expect(failure).toContain('the annotation sluice.dev/validator-condition cannot be');
  }
});

test('`when` gets the input resources of the function', async () => {
  const when = (condition: string, more = '') =>
    render({
      Kptfile: kptfile(`  mutators:\n${mark('M', `      when: ${JSON.stringify(condition)}\n${more}`)}`),
      'a.yaml': configMap('a', 'data: {size: "3"}\n'),
    });
  expect((await when("resources.exists(r, r.kind == 'ConfigMap')")).edits.has('a.yaml')).toBe(true);
  const skipped = await when("resources.exists(r, r.kind == 'Deployment')");
  expect(skipped.edits.size).toBe(0);
  expect(skipped.steps[0]?.result).toMatchObject({ exitCode: 0, results: [{ severity: 'info' }] });
  expect((await when('resources.size() == 1', '      selectors: [{name: a}]\n')).edits.has('a.yaml')).toBe(true);
  expect((await when('resources[0].data.size')).failure).toContain('field not found: data');
  expect((await when('resources.nope(')).failure).toMatch(
    /^Kptfile: pipeline.mutators\[0\], function "mark": expression/,
  );
});

test('events report every function before and after it runs', async () => {
  const events: PipelineEvent[] = [];
  const { steps } = await render(
    { Kptfile: kptfile(`  mutators:\n${mark('M')}  validators:\n    - image: refuse\n`) },
    { options: { onEvent: (event) => events.push(event) } },
  );
  expect(events.map(({ type, step }) => [type, step.list])).toEqual([
    ['started', 'mutators'],
    ['finished', 'mutators'],
    ['started', 'validators'],
    ['finished', 'validators'],
  ]);
  expect(events[0]?.step.result).toEqual({ image: 'ghcr.io/kptdev/krm-functions-catalog/mark:latest' });
  expect(events.filter(({ type }) => type === 'finished').map(({ step }) => step)).toEqual(steps);
});

test('one function runs on everything, with a configuration from outside, and needs no Kptfile', async () => {
  const config = configMap('outside', 'data: {word: O}\n');
  const { edits, failure } = await render(
    { 'a.yaml': configMap('a'), 'b/c.yaml': configMap('c'), 'x/Kptfile': kptfile(`  mutators:\n${mark('M')}`) },
    { input: { only: { list: 'mutators', function: { image: 'mark' }, config } } },
  );
  expect(failure).toBeUndefined();
  expect([...edits.values()].map(trailOf)).toEqual(['O', 'O', 'O']);
  const removed = await render(
    { Kptfile: kptfile('') },
    { input: { only: { list: 'mutators', function: { image: 'remove', configMap: { name: 'test' } } } } },
  );
  expect(removed.edits.get('Kptfile')).toBeNull();
});

test('the pipeline is that of the Kptfile before functions changed it', async () => {
  const rewrite = testFunction('rewrite', ({ items }) => {
    for (const item of items) if (item.kind === 'Kptfile') item.delete(['pipeline', 'mutators', 1]);
  });
  const { edits, steps } = await render(
    { Kptfile: kptfile(`  mutators:\n    - image: rewrite\n${mark('M')}`), 'a.yaml': configMap('a') },
    { functions: [...testFunctions, rewrite] },
  );
  expect(steps.length).toBe(2);
  expect(edits.get('Kptfile')).not.toContain('word: M');
});

test('a package without functions stays unread; one without a Kptfile is no package', async () => {
  expect(await render({ Kptfile: kptfile('  mutators: []\n'), 'a.yaml': 'a: {{ template }}' })).toEqual({
    edits: new Map(),
    steps: [],
    notes: [],
  });
  expect((await render({ 'a.yaml': configMap('a') })).failure).toContain('it has no Kptfile');
  expect((await render({ Kptfile: kptfile(''), 'a/Kptfile': 'kind: Kptfile\n' })).failure).toMatch(/^a\/Kptfile:1: /);
});

test('files that are no resources stay as they are and are noted', async () => {
  const { edits, notes } = await render({
    Kptfile: kptfile(`  mutators:\n${mark('M')}`),
    'chart/deployment.yaml': 'kind: {{ .Values.kind }}\n',
    'values.yaml': 'replicas: 3\n',
  });
  expect([...edits.keys()]).toEqual(['Kptfile']);
  expect(notes).toHaveLength(2);
});

test('the same package has the same result, and rendering the result changes nothing', async () => {
  const once = testFunction('once', ({ items }) => {
    if (!items.some(({ name }) => name === 'made'))
      items.push(Resource.parse(configMap('made'), { file: '', index: 0 }));
    for (const item of items) item.set(['metadata', 'labels', 'app'], 'shop');
  });
  const functions = [...testFunctions, once];
  const files = { Kptfile: kptfile('  mutators:\n    - image: once\n'), 'a.yaml': configMap('a') };
  const first = await render(files, { functions });
  expect([...first.edits.keys()].sort()).toEqual(['Kptfile', 'a.yaml', 'configmap_made.yaml']);
  expect(await render(files, { functions })).toEqual(first);
  const texts = Object.fromEntries([...first.edits].map(([path, text]) => [path, text ?? '']));
  expect((await render({ ...files, ...texts }, { functions })).edits.size).toBe(0);
});

test('a built-in function gets the pinned version, prints to stderr, and may succeed with errors', async () => {
  const versions: unknown[] = [];
  const pinned = testFunction('pinned', (list, { version }) => {
    versions.push(version);
    list.stderr = 'printed\n';
    list.results.push({ severity: 'error', message: 'reported' });
    list.errorsPass = true;
  });
  const functions = [...testFunctions, pinned];
  const pipeline =
    '  mutators:\n    - image: pinned:v0.1.1\n    - image: pinned\n    - image: pinned:v9.9.9\n      tag: v0.3.0\n';
  const { failure, steps } = await render({ Kptfile: kptfile(pipeline) }, { functions });
  expect(failure).toBeUndefined();
  expect(versions).toEqual([{ major: 0, minor: 1, patch: 1 }, undefined, { major: 0, minor: 3, patch: 0 }]);
  expect(steps[0]?.result).toMatchObject({ exitCode: 0, stderr: 'printed\n', errorResults: [{ message: 'reported' }] });
});

test('an image without a registry is in the one that is set, for results, containers, rules and pinned validators', async () => {
  const images: string[] = [];
  const external = externalFunction(({ image = '', input }) => {
    images.push(image);
    return { exitCode: 0, stdout: input, stderr: '' };
  });
  const registry = 'registry.example.com/fn';
  const files = {
    Kptfile: kptfile(
      '  mutators:\n    - image: mark:v1\n      configMap: {word: A}\n    - image: away:v2\n    - image: other.example.com/away:v3\n    - image: old\n' +
        '  validators:\n    - image: check:v1\n',
    ),
    'a.yaml': configMap('a'),
  };
  const pinnedValidators = [{ function: 'check', conditionType: 'Checked', image: `${registry}/check:v1` }];
  const rules = [{ image: `${registry}/old`, action: { type: 'forbid', message: 'too old' } }] as const;
  const validatorConditions = new Map([['check', 'Checked']]);
  const input = { registry, rules, validatorConditions, pinnedValidators };
  const refused = await render(files, { external, input });
  expect(refused.failure).toContain('too old');
  const outcome = await render(files, { external, input: { ...input, rules: [] } });
  const own = [`${registry}/mark:v1`, `${registry}/away:v2`, 'other.example.com/away:v3', `${registry}/old:latest`];
  expect(outcome.steps.map(({ result }) => result.image)).toEqual([...own, `${registry}/check:v1`]);
  expect(images.slice(-4)).toEqual([...own.slice(1), `${registry}/check:v1`]);
  expect(trailOf(outcome.edits.get('a.yaml'))).toBe('A');
  expect(outcome.steps.at(-1)).toMatchObject({ conditionType: 'Checked', pinned: true });
});
