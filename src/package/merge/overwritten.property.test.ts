import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { runs } from '../../../test/support/runs.ts';
import { mergePackage } from './merge-package.ts';
import type { PackageFiles } from './package-files.ts';

type Value = null | string | number | boolean | readonly Value[] | { readonly [key: string]: Value };
type Mapping = Readonly<Record<string, Value>>;

const leaf = fc.constantFrom<Value>(1, 2, '1', 'a', null, true);
const list = fc.array(leaf, { maxLength: 3 });
const mapping = fc.dictionary(
  fc.constantFrom('a', 'b', 'c.d/e'),
  fc.oneof(leaf, list, fc.dictionary(fc.constantFrom('x', 'y'), leaf, { maxKeys: 2 })),
  { maxKeys: 3 },
);
const named = (fields: Record<string, fc.Arbitrary<Value>>) =>
  fc.uniqueArray(fc.record({ name: fc.constantFrom('one', 'two', 'three'), ...fields }, { requiredKeys: ['name'] }), {
    selector: ({ name }) => name,
    maxLength: 3,
  });
const specs = fc.record(
  {
    m: fc.oneof(mapping, leaf),
    replicas: leaf,
    args: fc.oneof(list, leaf),
    containers: named({ image: leaf, args: list, env: named({ value: leaf }) as fc.Arbitrary<Value> }),
    zones: named({ size: leaf }),
  },
  { requiredKeys: [] },
) as fc.Arbitrary<Mapping>;
/** Lists that merge entry by entry in a Deployment; in a custom resource there are none. */
const KEYED = /(?:^|\.)(?:containers|env)$/;

function packageOf(apiVersion: string, spec: Mapping): PackageFiles {
  const object = { apiVersion, kind: 'Deployment', metadata: { name: 'web' }, spec };
  return new Map([['web.yaml', { data: Buffer.from(stringify(object)) }]]);
}

test('every local change is in the result or in the report, and only local changes are reported', () => {
  fc.assert(
    fc.property(fc.constantFrom('apps/v1', 'example.com/v1'), specs, specs, specs, (api, original, updated, local) => {
      const [mine, before, after] = [local, original, updated].map((spec) => packageOf(api, spec)) as [
        PackageFiles,
        PackageFiles,
        PackageFiles,
      ];
      const { files, overwritten } = mergePackage(mine, before, after);
      const result = parse(files.get('web.yaml')?.data.toString() ?? '') as { spec?: Mapping };
      const reported = overwritten.fields.map(({ field }) => field);
      expect(overwritten.total).toBe(reported.length);
      const isKeyed = api === 'apps/v1';
      const [was, is, now] = [original, local, result.spec ?? {}].map((spec) => entriesIn(spec, 'spec', isKeyed));
      const lost = lostBetween(was, is, now, 'spec');
      const isReported = (path: string) => reported.some((field) => field === path || /^[.[]/.test(rest(path, field)));
      expect(lost.filter((path) => !isReported(path))).toEqual([]);
      for (const field of reported) expect([field, at(is, field)]).not.toEqual([field, at(was, field)]);
    }),
    { numRuns: runs(2_000) },
  );
});

function rest(path: string, start: string): string {
  return path.startsWith(start) ? path.slice(start.length) : '';
}

/** A value in which lists that merge by entries are mappings. Other lists stay as they are. */
type Tree = Map<string, Tree> | Value | undefined;

function entriesIn(value: Value | undefined, path: string, isKeyed: boolean): Tree {
  if (Array.isArray(value)) {
    if (!isKeyed || !KEYED.test(path)) return value as Value;
    const items = value as readonly Mapping[];
    return new Map(items.map((item) => [`[${item.name as string}]`, entriesIn(item, path, isKeyed)]));
  }
  if (value === null || typeof value !== 'object') return value;
  const step = (key: string) => (/^[\w-]+$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`);
  return new Map(
    Object.entries(value).map(([key, field]) => [step(key), entriesIn(field, `${path}${step(key)}`, isKeyed)]),
  );
}

/** Paths of what changed from `was` to `is`, and is not so in `now`. */
function lostBetween(was: Tree, is: Tree, now: Tree, path: string): string[] {
  if (JSON.stringify(plain(was)) === JSON.stringify(plain(is))) return [];
  const keysOf = (tree: Tree) => (tree instanceof Map ? [...tree.keys()] : []);
  if (is instanceof Map) {
    // A list without entries may be absent as well.
    const isEmptyMapping = is.size === 0 && !KEYED.test(path);
    const isGone = !(now instanceof Map) && (isEmptyMapping || !(was instanceof Map));
    const keys = new Set([...keysOf(was), ...keysOf(is)]);
    const within = [...keys].flatMap((key) => lostBetween(field(was, key), is.get(key), field(now, key), path + key));
    return isGone ? [path, ...within] : within;
  }
  // Of a mapping that was removed, no field may come back.
  if (was instanceof Map && is === undefined)
    return keysOf(was).flatMap((key) => lostBetween(was.get(key), undefined, field(now, key), path + key));
  if (Array.isArray(is) || (is === undefined && Array.isArray(was)))
    return isListKept(was, is as Value[] | undefined, now) ? [] : [path];
  return JSON.stringify(plain(is)) === JSON.stringify(plain(now)) ? [] : [path];
}

function isListKept(was: Tree, is: readonly Value[] | undefined, now: Tree): boolean {
  if (is === undefined) return now === undefined;
  const texts = (side: Tree) => (Array.isArray(side) ? side.map((item) => JSON.stringify(item)) : []);
  const [mine, before, after] = [texts(is), texts(was), texts(now)];
  const isAdded = mine.every((text) => before.includes(text) || after.includes(text));
  return isAdded && before.every((text) => mine.includes(text) || !after.includes(text));
}

function field(tree: Tree, key: string): Tree {
  return tree instanceof Map ? tree.get(key) : undefined;
}

function plain(tree: Tree): unknown {
  if (!(tree instanceof Map)) return tree;
  return Object.fromEntries([...tree.keys()].sort().map((key) => [key, plain(tree.get(key))]));
}

/** The order of entries may be what was changed. */
function inOrder(tree: Tree): unknown {
  return tree instanceof Map ? { entries: [...tree].map(([key, value]) => [key, inOrder(value)]) } : tree;
}

function at(tree: Tree, path: string): unknown {
  const steps = path.slice('spec'.length).match(/\.[\w-]+|\["[^"]*"\]|\[[^\]]*\]/g) ?? [];
  return inOrder(steps.reduce<Tree>(field, tree));
}
