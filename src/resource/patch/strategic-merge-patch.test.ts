import { describe, expect, test } from 'vitest';
import { deepFreeze } from '../object/object.ts';
import type { StructuralSchema } from '../schema/structural/structural-schema.ts';
import { applyStrategicMergePatch } from './strategic-merge-patch.ts';

const text: StructuralSchema = { type: 'string' };
const item: StructuralSchema = {
  type: 'object',
  properties: { name: text, note: text, data: { type: 'object', additionalProperties: text } },
};
const schema: StructuralSchema = {
  type: 'object',
  properties: {
    data: { type: 'object', additionalProperties: text },
    tags: { type: 'array', 'x-kubernetes-list-type': 'set', items: text },
    items: { type: 'array', 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'], items: item },
    plain: { type: 'array', items: item },
    one: item,
  },
};
const names = (list: string) => list.split(' ').map((name) => ({ name }));

describe('applyStrategicMergePatch', () => {
  test.each<[string, unknown, unknown, unknown]>([
    ['merges maps', { data: { a: '1', b: '2' } }, { data: { b: '3', c: '4' } }, { data: { a: '1', b: '3', c: '4' } }],
    ['null takes a field away', { data: { a: '1', b: '2' } }, { data: { a: null } }, { data: { b: '2' } }],
    ['null in what is new is left out', {}, { one: { name: 'x', note: null } }, { one: { name: 'x' } }],
    ['replaces a value of another type', { data: ['x'] }, { data: { a: '1' } }, { data: { a: '1' } }],
    ['replaces lists without a type', { plain: names('a b') }, { plain: names('c') }, { plain: names('c') }],
    ['replaces lists that no schema declares', { other: [1, 2] }, { other: [3] }, { other: [3] }],
    ['adds to a set', { tags: ['a', 'b'] }, { tags: ['c', 'b'] }, { tags: ['c', 'a', 'b'] }],
    [
      'merges items by their key',
      { items: [{ name: 'a', note: 'x', data: { k: '1' } }, { name: 'b' }] },
      { items: [{ name: 'a', data: { l: '2' } }, { name: 'c' }] },
      { items: [{ name: 'a', note: 'x', data: { k: '1', l: '2' } }, { name: 'c' }, { name: 'b' }] },
    ],
    [
      'deletes an item',
      { items: names('a b c') },
      { items: [{ $patch: 'delete', name: 'b' }] },
      { items: names('a c') },
    ],
    [
      'deletes what is not there from no list',
      {},
      { items: [{ $patch: 'delete', name: 'b' }, { name: 'c' }] },
      { items: names('c') },
    ],
    [
      'replaces a list',
      { items: names('a b') },
      { items: [{ name: 'c' }, { $patch: 'replace' }] },
      { items: names('c') },
    ],
    ['replaces a map', { data: { a: '1' } }, { data: { $patch: 'replace', b: '2' } }, { data: { b: '2' } }],
    ['empties a map', { data: { a: '1' } }, { data: { $patch: 'delete' } }, { data: {} }],
    ['deletes a map that is not there', {}, { data: { $patch: 'delete' } }, {}],
    [
      'merges a map whose schema requires it',
      { data: { a: '1' } },
      { data: { $patch: 'merge', b: '2' } },
      { data: { a: '1', b: '2' } },
    ],
    [
      'deletes from a set',
      { tags: ['a', 'b', 'c'] },
      { '$deleteFromPrimitiveList/tags': ['b', 'x'] },
      { tags: ['a', 'c'] },
    ],
    [
      'orders a list that is changed',
      { items: names('a b c d') },
      { '$setElementOrder/items': names('d a e'), items: names('e') },
      { items: names('b c d a e') },
    ],
    [
      'orders a list that is not changed',
      { tags: ['a', 'b', 'c'] },
      { '$setElementOrder/tags': ['c', 'a'] },
      { tags: ['b', 'c', 'a'] },
    ],
    ['orders nothing where there is nothing', {}, { '$setElementOrder/tags': ['c', 'a'] }, {}],
    [
      'retains keys',
      { one: { name: 'x', note: 'n' } },
      { one: { $retainKeys: ['name', 'data'], data: { a: '1' } } },
      { one: { name: 'x', data: { a: '1' } } },
    ],
    ['leaves directives out of what is new', {}, { one: { $retainKeys: ['name'], name: 'x' } }, { one: { name: 'x' } }],
    [
      'leaves items without a key alone',
      { items: [{ note: 'x' }, { name: 'a' }, { name: 'a', note: 'twice' }] },
      { items: [{ name: 'a', note: 'y' }] },
      { items: [{ note: 'x' }, { name: 'a', note: 'y' }, { name: 'a', note: 'twice' }] },
    ],
    ['finds fields by any name', { data: { $x: '1' } }, { data: { $y: '2' } }, { data: { $x: '1', $y: '2' } }],
  ])('%s', (_, target, patch, expected) => {
    expect(applyStrategicMergePatch(deepFreeze(target), deepFreeze(patch), schema)).toEqual(expected);
  });

  test.each<[unknown, unknown, string]>([
    [{ data: {} }, { data: { $patch: 'burn' } }, 'data[$patch]: Invalid value: must be delete, replace or merge'],
    [{ items: [] }, { items: [{ note: 'hush' }] }, 'items[0]: Invalid value: must have the key name'],
    [{ tags: [] }, { tags: [{}] }, 'tags[0]: Invalid value: must be a string, a number or a boolean'],
    [{}, { '$deleteFromPrimitiveList/tags': 'a' }, 'Invalid value: must be a list'],
    [{ tags: [] }, { '$setElementOrder/tags': 'a' }, 'Invalid value: must be a list'],
    [{ one: {} }, { one: { $retainKeys: ['name'], note: 'hush' } }, 'one.note: Invalid value: is not in $retainKeys'],
  ])('%j with %j is refused without showing values', (target, patch, message) => {
    const apply = () => applyStrategicMergePatch(target, patch, schema);
    expect(apply).toThrow(message);
    expect(apply).toThrow(expect.objectContaining({ code: 'InvalidInput' }));
    expect(apply).not.toThrow(/hush/);
  });

  test('a key named __proto__ is a key', () => {
    const patch = JSON.parse('{"data": {"__proto__": {"polluted": "1"}}, "$setElementOrder/__proto__": ["x"]}');
    const patched = applyStrategicMergePatch({ data: { a: '1' } }, patch, schema);
    expect(JSON.stringify(patched)).toBe('{"data":{"a":"1","__proto__":{"polluted":"1"}}}');
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });
});
