import { expect, test } from 'vitest';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { KrmFunction, ResourceList } from '../model/function.ts';
import { DEFAULT_FUNCTION_LIMITS, type PipelineOutcome } from '../model/pipeline.ts';
import { Resource } from '../resource/resource.ts';
import { configMap, externalFunction, kptfile, render, testFunction } from './testing.ts';

const FILES = { 'a.yaml': `${configMap('one')}---\n${configMap('two')}`, 'b/Kptfile': kptfile('') };

function runBad(run: KrmFunction['run'], limits = DEFAULT_FUNCTION_LIMITS): Promise<PipelineOutcome> {
  return render(
    { Kptfile: kptfile('  mutators:\n    - image: bad\n'), ...FILES },
    { functions: [testFunction('bad', run)], options: { limits } },
  );
}

const made = (file: string) => Resource.parse(configMap('made'), { file, index: 0 });

const without = (drops: (item: Resource) => boolean) => (list: ResourceList) => {
  list.items = list.items.filter((item) => !drops(item));
};

const BAD: Readonly<Record<string, [run: KrmFunction['run'], message: string]>> = {
  'drops the Kptfile': [without(({ file }) => file === 'Kptfile'), 'removed "Kptfile"'],
  'drops a nested Kptfile': [without(({ file }) => file === 'b/Kptfile'), 'removed "b/Kptfile"'],
  'drops everything': [without(() => true), 'removed "Kptfile"'],
  'moves the Kptfile': [({ items }) => void Object.assign(items[0] ?? {}, { file: 'other.yaml' }), 'removed "Kptfile"'],
  'makes the Kptfile unreadable': [
    ({ items }) => items[0]?.set(['apiVersion'], 'kpt.dev/v9'),
    'made "Kptfile" unreadable',
  ],
  'takes a name away': [({ items }) => void items[1]?.delete(['metadata', 'name']), 'without apiVersion, kind or name'],
  'makes a resource without a kind': [
    ({ items }) => void items.push(Resource.from({ apiVersion: 'v1', metadata: { name: 'x' } })),
    'without apiVersion',
  ],
  'writes outside of the package': [
    ({ items }) => void Object.assign(items[1] ?? {}, { file: '../../x.yaml' }),
    'it put ConfigMap one where it cannot be',
  ],
  'writes to an absolute path': [
    ({ items }) => void items.push(made('/etc/x.yaml')),
    'it put ConfigMap made where it cannot be',
  ],
  'writes into .git': [
    ({ items }) => void items.push(made('x/.GIT/x.yaml')),
    'it put ConfigMap made where it cannot be',
  ],
  'writes what is no YAML file': [
    ({ items }) =>
      void items.push(
        Object.assign(Resource.from({ apiVersion: 'v1', kind: 'A', metadata: { name: 'x' } }), { file: 'run.sh' }),
      ),
    'resources go into .yaml and .yml files',
  ],
  'puts two resources into one place': [
    ({ items }) => void Object.assign(items[2] ?? {}, { index: 0 }),
    'in the place of ConfigMap one',
  ],
  'duplicates a resource': [
    ({ items }) => void items.push((items[1] as Resource).clone()),
    'in the place of ConfigMap one',
  ],
  'throws an error of ours': [
    () => {
      throw new SluiceError('InvalidInput', 'the configuration lacks a word');
    },
    'the configuration lacks a word',
  ],
  'throws something else': [
    () => {
      throw new TypeError('x is not\na function');
    },
    'it crashed: x is not a function',
  ],
  'throws nothing': [
    () => {
      throw undefined;
    },
    'it crashed',
  ],
  rejects: [() => Promise.reject(new Error('later')), 'it crashed: later'],
  'finds errors': [
    ({ results }) => void results.push({ severity: 'error', message: 'one' }, { severity: 'error', message: 'two' }),
    'one (and 1 more)',
  ],
};

test.each(Object.entries(BAD))(
  'a function that %s fails by its name, and nothing changes',
  async (_, [run, message]) => {
    const { edits, steps, failure } = await runBad(run);
    expect(failure).toMatch(/^Kptfile: pipeline\.mutators\[0\], function "bad": /);
    expect(failure).toContain(message);
    expect(failure).not.toContain('\n');
    expect(edits.size).toBe(0);
    expect(steps).toHaveLength(1);
    expect(steps[0]?.result.exitCode).toBe(1);
  },
);

test('a function that returns too much fails by its name', async () => {
  const limits = { ...DEFAULT_FUNCTION_LIMITS, resources: 100, outputBytes: 10_000 };
  const many = await runBad(({ items }) => {
    for (let at = 0; at < 200; at++)
      items.push(Resource.from({ apiVersion: 'v1', kind: 'A', metadata: { name: `x${at}` } }));
  }, limits);
  expect(many.failure).toContain('function "bad": it returned 204 resources; the maximum is 100');
  const large = await runBad(({ items }) => items[1]?.set(['data', 'a'], 'x'.repeat(20_000)), limits);
  expect(large.failure).toContain('it returned more than 10000 bytes of resources');
  const deep = await runBad(({ items }) => {
    let value: unknown = 'x';
    for (let at = 0; at < 500; at++) value = { a: value };
    items[1]?.set(['data'], value);
  }, limits);
  expect(deep.failure).toContain('nests deeper than 200 levels');
});

test('a step is marked as retryable only if a retry may succeed', async () => {
  const bad = async (run: KrmFunction['run']) => (await runBad(run)).steps[0];
  const invalid = await bad(() => {
    throw new SluiceError('InvalidInput', 'no');
  });
  expect(invalid?.result).toMatchObject({ exitCode: 1, stderr: 'no' });
  expect(invalid?.result.executionError).toBeUndefined();
  const broken = await bad(() => {
    throw new Error('oh');
  });
  expect(broken?.result).toMatchObject({ exitCode: 1, executionError: 'it crashed: oh' });
});

test('a pipeline that is stopped rejects with the reason', async () => {
  const controller = new AbortController();
  const stop = testFunction('stop', () => controller.abort(new Error('enough')));
  const files = { Kptfile: kptfile('  mutators:\n    - image: stop\n    - image: stop\n') };
  const options = { signal: controller.signal };
  await expect(render(files, { functions: [stop], options })).rejects.toThrow('enough');
});

const EXTERNAL = {
  Kptfile: kptfile('  mutators:\n    - image: example.com/team/mystery:v3\n'),
  'a.yaml': configMap('a'),
};

test('an external function gets a ResourceList and returns one', async () => {
  const images: (string | undefined)[] = [];
  const external = externalFunction(({ image, input }) => {
    images.push(image);
    return { exitCode: 0, stdout: input.replace('name: a\n', 'name: changed\n'), stderr: 'done\n' };
  });
  const { edits, steps } = await render(EXTERNAL, { external });
  expect(images).toEqual(['example.com/team/mystery:v3']);
  expect(edits).toEqual(new Map([['a.yaml', configMap('changed')]]));
  expect(steps[0]?.result).toMatchObject({ image: 'example.com/team/mystery:v3', exitCode: 0, stderr: 'done\n' });
});

test('an external function that fails reports why by its findings or its output', async () => {
  const results = 'results:\n- message: too many\n  severity: error\n';
  const list = `apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\n`;
  const answer = (exitCode: number, stdout: string, stderr = '') =>
    render(EXTERNAL, { external: externalFunction(() => ({ exitCode, stdout, stderr })) });
  expect((await answer(3, list + results, 'failed')).failure).toContain(
    'function "example.com/team/mystery:v3": too many',
  );
  expect((await answer(3, 'no list', 'line one\n\u001b\u0007line two\n')).failure).toContain(': line one line two');
  expect((await answer(3, '')).failure).toContain('it ended with exit code 3');
  expect((await answer(3, '')).steps[0]?.result.exitCode).toBe(3);
  expect((await answer(0, '\n')).failure).toContain('it printed no ResourceList');
  expect((await answer(0, 'a: b\n')).failure).toContain('ResourceList:1: not a KRM resource');
  expect((await answer(0, list)).failure).toContain('removed "Kptfile"');
  expect((await answer(0, list + results)).failure).toContain('too many');
});

test('a function that cannot be run reports that, with the next step', async () => {
  const off = await render(EXTERNAL);
  expect(off.failure).toMatch(
    /^Kptfile: pipeline.mutators\[0\], function "example.com\/team\/mystery:v3": it is not built in/,
  );
  expect(off.steps[0]).toMatchObject({ unavailable: true, result: { exitCode: 1 } });
  const refused = await render(EXTERNAL, {
    external: {
      ...externalFunction(() => ({ exitCode: 0, stdout: '', stderr: '' })),
      refusal: async () => 'install an engine',
    },
  });
  expect(refused.failure).toContain('install an engine');
  expect(refused.steps[0]?.unavailable).toBe(true);
  const range = await render({
    Kptfile: kptfile('  mutators:\n    - image: example.com/x\n      tag: ">= 1.2, < 2"\n'),
  });
  expect(range.failure).toContain('the tag ">= 1.2, < 2" matches several versions of example.com/x; name one of them');
  const slow = await render(EXTERNAL, {
    external: externalFunction(() => Promise.reject(new SluiceError('Timeout', 'it took longer than 30 s'))),
  });
  expect(slow.steps[0]?.unavailable).toBeUndefined();
  expect(slow.steps[0]?.result.executionError).toBe('it took longer than 30 s');
});

test('unbounded output of a function is truncated, errors last', async () => {
  const { steps, failure } = await runBad(({ results }) => {
    for (let at = 0; at < 5000; at++) results.push({ severity: 'info', message: `info ${at}` });
    results.push({ severity: 'error', message: 'x'.repeat(100_000) });
  });
  const { results = [], errorResults = [] } = steps[0]?.result ?? {};
  expect(results).toHaveLength(1001);
  expect(results[0]).toMatchObject({ severity: 'error' });
  expect(results[0]?.message).toHaveLength(4000);
  expect(results.at(-1)?.message).toBe('4001 more findings are omitted');
  expect(errorResults).toHaveLength(1);
  expect(failure?.length).toBeLessThan(1000);
});

test('a second resource of the same kind and name in another file is allowed, as in kpt, and noted', async () => {
  const { edits, notes, failure } = await runBad(({ items }) => {
    items.push(Resource.parse(configMap('one'), { file: 'c.yaml', index: 0 }));
    items.push(
      Resource.from({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'three' } }, { file: 'c.yaml', index: 0 }),
    );
  });
  expect(failure).toBeUndefined();
  expect(edits.get('c.yaml')).toBe(`${configMap('one')}---\n${configMap('three')}`);
  expect(notes).toEqual([
    'Kptfile: pipeline.mutators[0], function "bad": it created c.yaml: ConfigMap one, and the package has one already',
  ]);
});
