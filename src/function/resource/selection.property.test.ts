import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Selector } from '../../../kptfile-schema/index.ts';
import { runs } from '../../../test/support/runs.ts';
import { configMap, kptfile, render, testFunction } from '../pipeline/testing.ts';
import { Resource } from './resource.ts';

/** A resource as the reference below knows it. */
interface Plain {
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly trail: string;
}

type Step =
  | {
      readonly does: 'mark' | 'remove' | 'replace';
      readonly select: readonly Selector[];
      readonly exclude: readonly Selector[];
    }
  | { readonly does: 'make'; readonly select: readonly Selector[]; readonly exclude: readonly Selector[] };

// What the functions do with their input; the trail shows in which order.
const functions = [
  testFunction('mark', ({ items, config }) => {
    for (const item of items)
      if (item.kind !== 'Kptfile') item.set(['trail'], `${trailOf(item)}${config?.get(['data', 'at'])}`);
  }),
  testFunction('remove', (list) => {
    list.items = list.items.filter((item) => item.kind === 'Kptfile' || trailOf(item).length % 2 === 0);
  }),
  // As a function outside of this process does it: with new objects.
  testFunction('replace', (list) => {
    list.items = list.items.map((item) => {
      if (item.kind === 'Kptfile') return item;
      const made = Resource.of(item.clone().root, item, item);
      made.set(['trail'], `${trailOf(item)}r`);
      return made;
    });
    list.items.reverse();
  }),
  testFunction('make', ({ items, config }) => {
    const count = items.filter(({ kind }) => kind !== 'Kptfile').length;
    const name = `made-${config?.get(['data', 'at'])}-${count}`;
    items.push(Resource.from({ apiVersion: 'v1', kind: 'Made', metadata: { name }, trail: '' }));
  }),
];

function trailOf(item: Resource): string {
  return String(item.get(['trail']) ?? '');
}

function reference(resources: readonly Plain[], steps: readonly Step[]): Plain[] {
  let all = [...resources];
  for (const [at, { does, select, exclude }] of steps.entries()) {
    const gets = (each: Plain) =>
      (select.length === 0 || select.some((selector) => isMatch(each, selector))) &&
      !exclude.some((selector) => !saysNothing(selector) && isMatch(each, selector));
    if (does === 'make')
      all.push({ kind: 'Made', name: `made-${at}-${all.filter(gets).length}`, labels: {}, trail: '' });
    else if (does === 'remove') all = all.filter((each) => !gets(each) || each.trail.length % 2 === 0);
    else
      all = all.map((each) => (gets(each) ? { ...each, trail: `${each.trail}${does === 'mark' ? at : 'r'}` } : each));
  }
  return all;
}

function saysNothing({ labels = {}, ...fields }: Selector): boolean {
  return Object.keys(fields).length === 0 && Object.keys(labels).length === 0;
}

function isMatch(each: Plain, { kind, name, namespace, labels = {} }: Selector): boolean {
  if (kind !== undefined && kind !== each.kind) return false;
  if (name !== undefined && name !== each.name) return false;
  if (namespace !== undefined && namespace !== each.namespace) return false;
  return Object.entries(labels).every(([key, value]) => each.labels[key] === value);
}

const kind = fc.constantFrom('A', 'B');
const name = fc.constantFrom('x', 'y', 'z');
const namespace = fc.constantFrom('n', 'm');
const labels = fc.dictionary(fc.constantFrom('app', 'tier'), fc.constantFrom('1', 'on'), { maxKeys: 2 });
const selector = fc.record({ kind, name, namespace, labels }, { requiredKeys: [] }) as fc.Arbitrary<Selector>;
const step = fc.record({
  does: fc.constantFrom('mark' as const, 'remove' as const, 'replace' as const, 'make' as const),
  select: fc.array(selector, { maxLength: 2 }),
  exclude: fc.array(selector, { maxLength: 2 }),
});
const resource = fc.record({ kind, name, namespace, labels }, { requiredKeys: ['kind', 'name', 'labels'] });

test('functions with selectors and exclusions change the selected resources only', async () => {
  const run = fc.asyncProperty(
    fc.array(fc.array(resource, { minLength: 1, maxLength: 3 }), { maxLength: 4 }),
    fc.array(step, { maxLength: 6 }),
    async (groups, steps) => {
      const plain = groups.flat().map((each): Plain => ({ ...each, trail: '' }));
      const files = Object.fromEntries(
        groups.map((group, at) => [`f${at}.yaml`, group.map((each) => JSON.stringify(asObject(each))).join('\n---\n')]),
      );
      const mutators = steps.map(({ does, select, exclude }, at) => ({
        image: does,
        configMap: { at: String(at) },
        selectors: select,
        exclude,
      }));
      const Kptfile = kptfile(`  mutators: ${JSON.stringify(mutators)}\n`);
      const { edits, failure } = await render({ ...files, Kptfile }, { functions });
      expect(failure).toBeUndefined();
      expect(edits.has('Kptfile')).toBe(false);
      const after = { ...files, ...Object.fromEntries(edits) };
      expect(Object.values(after).flatMap(readBack).sort()).toEqual(reference(plain, steps).map(output).sort());
    },
  );
  await fc.assert(run, {
    numRuns: runs(150),
    // An exclusion by no label says nothing, as the empty one: random runs meet it about once in a thousand.
    examples: [
      [
        [],
        [
          { does: 'make', select: [], exclude: [] },
          { does: 'mark', select: [], exclude: [{ labels: {} }] },
        ],
      ],
    ],
  });
});

function asObject({ kind, name, namespace, labels }: Omit<Plain, 'trail'>): object {
  const metadata = { name, ...(namespace === undefined ? {} : { namespace }), labels };
  return { apiVersion: 'v1', kind, metadata };
}

function readBack(text: string | null): string[] {
  return (text ?? '')
    .split(/^---\n/m)
    .filter((part) => part.trim() !== '')
    .map((part) => {
      const item = Resource.parse(part, { file: 'x', index: 0 });
      return `${item.kind} ${item.namespace ?? ''} ${item.name} ${trailOf(item)}`;
    });
}

function output({ kind, namespace, name, trail }: Plain): string {
  return `${kind} ${namespace ?? ''} ${name} ${trail}`;
}

test('labels and annotations are compared as texts, and an empty exclusion excludes nothing', async () => {
  const files = {
    Kptfile: kptfile(
      '  mutators:\n    - image: mark\n      configMap: {at: "1"}\n      selectors:\n        - labels: {on: "true"}\n          annotations: {size: "3"}\n      exclude: [{}]\n',
    ),
    'a.yaml': configMap('a', '  labels: {on: true}\n  annotations: {size: 3}\n'),
    'b.yaml': configMap('b', '  labels: {on: "true"}\n'),
  };
  const { edits } = await render(files, { functions });
  expect([...edits.keys()]).toEqual(['a.yaml']);
});
