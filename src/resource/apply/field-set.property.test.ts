import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { difference, type FieldSet, intersection, isEmpty, sameFields, showPaths, union } from './field-set.ts';
import { fromFieldsV1, toFieldsV1 } from './fields-v1.ts';

const element = fc.constantFrom('f:a', 'f:b', 'k:{"name":"x"}', 'v:1', 'i:0');
/** Paths as texts that keep their elements apart. */
const paths = fc.uniqueArray(fc.array(element, { minLength: 1, maxLength: 3 }), {
  maxLength: 8,
  selector: (path) => path.join('/'),
});

function setOf(given: readonly (readonly string[])[]): FieldSet {
  const fields: Record<string, unknown> = {};
  for (const path of given) {
    let node = fields;
    for (const step of path) {
      node[step] ??= {};
      node = node[step] as Record<string, unknown>;
    }
    node['.'] = {};
  }
  return fromFieldsV1(fields);
}

/** All paths of a set, by a walk that is not under test. */
function pathsOf(set: FieldSet, prefix: readonly string[] = []): string[] {
  const own = set.owned ? [prefix.join('/')] : [];
  return [...own, ...[...set.children].flatMap(([step, child]) => pathsOf(child, [...prefix, step]))].sort();
}

const texts = (given: readonly (readonly string[])[]) => given.map((path) => path.join('/')).sort();

describe('field sets', () => {
  test('are sets of paths', () => {
    fc.assert(
      fc.property(paths, paths, (left, right) => {
        const [l, r] = [setOf(left), setOf(right)];
        const [ls, rs] = [texts(left), texts(right)];
        expect(pathsOf(l)).toEqual(ls);
        expect(pathsOf(union(l, r))).toEqual([...new Set([...ls, ...rs])].sort());
        expect(pathsOf(difference(l, r))).toEqual(ls.filter((path) => !rs.includes(path)));
        expect(pathsOf(intersection(l, r))).toEqual(ls.filter((path) => rs.includes(path)));
        expect(sameFields(l, r)).toBe(ls.join(' ') === rs.join(' '));
        expect(isEmpty(l)).toBe(left.length === 0);
      }),
      { numRuns: runs(100) },
    );
  });

  test('that nothing changes are returned themselves', () => {
    fc.assert(
      fc.property(paths, paths, (left, right) => {
        const l = setOf(left);
        const both = union(l, setOf(right));
        expect(union(both, l)).toBe(both);
        const rest = difference(setOf(right), l);
        expect(difference(rest, l)).toBe(rest);
      }),
      { numRuns: runs(100) },
    );
  });

  test('round-trip through FieldsV1', () => {
    fc.assert(
      fc.property(paths, (given) => {
        const set = setOf(given);
        const written = JSON.stringify(toFieldsV1(set));
        expect(pathsOf(fromFieldsV1(JSON.parse(written)))).toEqual(pathsOf(set));
        expect(JSON.stringify(toFieldsV1(fromFieldsV1(JSON.parse(written))))).toBe(written);
      }),
      { numRuns: runs(100) },
    );
  });

  test('are shown as paths', () => {
    const set = fromFieldsV1({
      'f:spec': {
        'f:ports': { 'k:{"protocol":"TCP","port":80}': { '.': {}, 'f:name': {} } },
        'f:tags': { 'v:"blue"': {} },
        'f:list': { 'i:3': {} },
      },
      'f:metadata': { 'f:annotations': { 'f:example.org/x': {} } },
    });
    expect(showPaths(set)).toEqual([
      '.metadata.annotations.example.org/x',
      '.spec.list[3]',
      '.spec.ports[port=80,protocol="TCP"]',
      '.spec.ports[port=80,protocol="TCP"].name',
      '.spec.tags[="blue"]',
    ]);
  });
});

describe('FieldsV1 of others', () => {
  test.each<[unknown, unknown]>([
    [undefined, {}],
    ['text', {}],
    [{}, {}],
    [{ '.': {} }, {}],
    [{ 'f:a': null }, { 'f:a': {} }],
    [{ 'f:a': { 'x:later': {} } }, { 'f:a': {} }],
    [{ 'x:later': { 'f:a': {} }, nothing: {}, 'f:b': {} }, { 'f:b': {} }],
    [{ 'k:{"b":1,"a":"\\u003c"}': {} }, { 'k:{"a":"<","b":1}': {} }],
    [{ 'k:{"a": 1}': { 'f:x': {} }, 'k:{"a":1}': { 'f:y': {} } }, { 'k:{"a":1}': { 'f:x': {}, 'f:y': {} } }],
    [
      {
        'k:{}': {},
        'k:[1]': {},
        'k:{"a":{}}': {},
        'k:{': {},
        'v:': {},
        'v:null': {},
        'v:[1]': {},
        'i:x': {},
        'i:-1': {},
      },
      {},
    ],
    [
      { 'v: 1.0': {}, 'i:7': {} },
      { 'i:7': {}, 'v:1': {} },
    ],
    [JSON.parse('{"f:__proto__": {"f:a": {}}, "__proto__": {"f:b": {}}}'), { 'f:__proto__': { 'f:a': {} } }],
  ])('%j is read as %j', (given, expected) => {
    expect(JSON.stringify(toFieldsV1(fromFieldsV1(given)))).toBe(JSON.stringify(expected));
  });

  test('may be nested without end', () => {
    let deep: unknown = {};
    for (let level = 0; level < 100_000; level += 1) deep = { 'f:a': deep };
    expect(showPaths(fromFieldsV1(deep))[0]?.split('.').length).toBeLessThan(300);
  });
});
