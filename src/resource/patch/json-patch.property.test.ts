import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { isSluiceError } from '../../foundation/sluice-error.ts';
import { applyJsonPatch } from './json-patch.ts';

const add = (path: string, value: unknown) => ({ op: 'add', path, value });
const remove = (path: string) => ({ op: 'remove', path });
const replace = (path: string, value: unknown) => ({ op: 'replace', path, value });
const move = (from: string, path: string) => ({ op: 'move', from, path });
const copy = (from: string, path: string) => ({ op: 'copy', from, path });
const same = (path: string, value: unknown) => ({ op: 'test', path, value });

describe('applyJsonPatch', () => {
  test.each<[unknown, unknown[], unknown]>([
    [{ a: 1 }, [], { a: 1 }],
    [{}, [add('/a', 1)], { a: 1 }],
    [{ a: 1 }, [add('/a', 2)], { a: 2 }],
    [{ a: 1 }, [add('/b', null)], { a: 1, b: null }],
    [{}, [add('/', 1)], { '': 1 }],
    [{ a: {} }, [add('/a/', 1)], { a: { '': 1 } }],
    [{}, [add('', [1])], [1]],
    [[], [add('/0', 'x')], ['x']],
    [[], [add('/-', 'x')], ['x']],
    [['a', 'c'], [add('/1', 'b')], ['a', 'b', 'c']],
    [['a'], [add('/1', 'b')], ['a', 'b']],
    [{ a: [1, [2]] }, [add('/a/1/-', 3)], { a: [1, [2, 3]] }],
    [[1, 2], [add('/1', [9])], [1, [9], 2]],
    [{ a: 1, b: 2 }, [remove('/b')], { a: 1 }],
    [{ a: [{ b: 1, c: 2 }] }, [remove('/a/0/b')], { a: [{ c: 2 }] }],
    [[1, 2, 3], [remove('/1')], [1, 3]],
    [{ a: null }, [remove('/a')], {}],
    [{ a: [1, 2, 3] }, [remove('/a/0'), remove('/a/0')], { a: [3] }],
    [{ a: 1 }, [replace('/a', { b: 1 })], { a: { b: 1 } }],
    [[1, 2], [replace('/0', 9)], [9, 2]],
    [{ a: {} }, [replace('/a/b', 1)], { a: { b: 1 } }],
    [{}, [same('/a', null)], {}],
    [{ a: 1 }, [replace('', 'whole')], 'whole'],
    [{ a: { b: 1 }, c: {} }, [move('/a/b', '/c/d')], { a: {}, c: { d: 1 } }],
    [[1, 2, 3, 4], [move('/1', '/3')], [1, 3, 4, 2]],
    [[1, 2, 3, 4], [move('/3', '/1')], [1, 4, 2, 3]],
    [{ a: 1 }, [move('/a', '/a')], { a: 1 }],
    [{ a: { b: 1 } }, [move('/a/b', '/a')], { a: 1 }],
    [{ a: { b: 1 } }, [copy('/a', '/c'), add('/a/b', 2)], { a: { b: 2 }, c: { b: 1 } }],
    [{ a: { b: 1 } }, [copy('/a', '/c'), add('/c/b', 2)], { a: { b: 1 }, c: { b: 2 } }],
    [{ a: { b: 1 } }, [copy('/a', '/a/b')], { a: { b: { b: 1 } } }],
    [{ a: { x: 1, y: [1] } }, [same('/a', { y: [1], x: 1 })], { a: { x: 1, y: [1] } }],
    [{ a: null }, [same('/a', null)], { a: null }],
    [{ a: 1 }, [same('', { a: 1 })], { a: 1 }],
    [
      { 'a/b': 1, 'm~n': 2, '~1': 3 },
      [same('/a~1b', 1), same('/m~0n', 2), same('/~01', 3)],
      { 'a/b': 1, 'm~n': 2, '~1': 3 },
    ],
    [{ 'c%d': 1, 'k"l': 2, ' ': 3 }, [same('/c%d', 1), same('/k"l', 2), same('/ ', 3)], { 'c%d': 1, 'k"l': 2, ' ': 3 }],
    [{ 1: 'one', '01': 'two' }, [same('/1', 'one'), replace('/01', 'three')], { 1: 'one', '01': 'three' }],
    [{ constructor: 1 }, [remove('/constructor')], {}],
    [{}, [{ ...add('/a', 1), unknown: true }], { a: 1 }],
  ])('%j with %j', (target, patch, expected) => {
    const before = JSON.stringify([target, patch]);
    expect(applyJsonPatch(target, patch)).toEqual(expected);
    expect(JSON.stringify([target, patch])).toBe(before);
  });

  test.each<[unknown, unknown[], RegExp]>([
    [{}, [add('/a/b', 1)], /operation 0 \(add "\/a\/b"\): there is no "\/a"/],
    [{ a: 'text' }, [add('/a/b', 1)], /"\/a" has no fields/],
    [{ a: null }, [add('/a/b', 1)], /"\/a" has no fields/],
    ['text', [add('/a', 1)], /the value has no fields/],
    [[1], [add('/2', 1)], /the list has no index 2/],
    [[1], [add('/-1', 1)], /-1 is not an index of a list/],
    [[1], [add('/1e0', 1)], /1e0 is not an index/],
    [[1, 2], [add('/01', 1)], /01 is not an index/],
    [[1], [add('/bar', 1)], /bar is not an index/],
    [[1], [remove('/1')], /the list has no index 1/],
    [[1], [remove('/-')], /- is not an index/],
    [[1], [replace('/-', 1)], /- is not an index/],
    [{}, [remove('/a')], /there is no "\/a"/],
    [{}, [remove('')], /the whole value cannot be removed/],
    [{}, [replace('/a/b', 1)], /there is no "\/a"/],
    [{}, [move('/a', '/b')], /there is no "\/a"/],
    [{ a: { b: {} } }, [move('/a', '/a/b/c')], /cannot be moved into itself/],
    [{}, [copy('/a', '/b')], /there is no "\/a"/],
    [{ a: 1 }, [same('/a', '1')], /the value is another/],
    [{ a: [1, 2] }, [same('/a', [2, 1])], /the value is another/],
    [{ a: {} }, [same('/a', [])], /the value is another/],
    [{}, [same('/a', 1)], /the value is another/],
    [{}, [same('/a/b', null)], /there is no "\/a"/],
    [[], [same('/0', null)], /the list has no index 0/],
    [{ a: 1 }, [add('/b', 2), same('/a', 2)], /operation 1 \(test "\/a"\)/],
    [{}, [remove('/constructor')], /there is no "\/constructor"/],
    [{}, [add('/__proto__/polluted', 1)], /there is no "\/__proto__"/],
    [[], [replace('/length', 5)], /length is not an index/],
  ])('%j with %j is refused', (target, patch, message) => {
    const before = JSON.stringify(target);
    expect(() => applyJsonPatch(target, patch)).toThrow(message);
    expect(() => applyJsonPatch(target, patch)).toThrow(expect.objectContaining({ code: 'InvalidInput' }));
    expect(JSON.stringify(target)).toBe(before);
  });

  test.each<[unknown, RegExp]>([
    [{}, /must be a list/],
    [['add'], /operation 0 must be an object/],
    [[{ op: 'spam', path: '/a', value: 1 }], /no known "op"/],
    [[{ path: '/a', value: 1 }], /no known "op"/],
    [[{ op: 'add', value: 1 }], /"path" of operation 0 must be a JSON pointer/],
    [[{ op: 'add', path: 'a', value: 1 }], /JSON pointer/],
    [[{ op: 'add', path: '/a~2', value: 1 }], /JSON pointer/],
    [[{ op: 'add', path: '/a' }], /operation 0 \(add\) needs "value"/],
    [[{ op: 'test', path: '/a' }], /needs "value"/],
    [[{ op: 'move', path: '/a' }], /needs "from"/],
    [[{ op: 'copy', path: '/a', from: 1 }], /"from" of operation 0 must be a JSON pointer/],
  ])('%j is no patch', (patch, message) => {
    expect(() => applyJsonPatch({ a: 1 }, patch)).toThrow(message);
    expect(() => applyJsonPatch({ a: 1 }, patch)).toThrow(expect.objectContaining({ code: 'BadRequest' }));
  });

  test('a key named __proto__ is a key', () => {
    const patched = applyJsonPatch({}, [
      { op: 'add', path: '/__proto__', value: { polluted: true } },
      { op: 'add', path: '/__proto__/more', value: 1 },
      { op: 'copy', from: '/__proto__', path: '/copy' },
      { op: 'test', path: '/__proto__/polluted', value: true },
    ]) as object;
    expect(Object.keys(patched)).toEqual(['__proto__', 'copy']);
    expect(Object.getPrototypeOf(patched)).toBe(Object.prototype);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    expect(applyJsonPatch(patched, [remove('/__proto__'), remove('/copy')])).toEqual({});
  });

  test('the number of operations is bounded', () => {
    const operations = Array.from({ length: 10_001 }, () => same('', {}));
    expect(() => applyJsonPatch({}, operations)).toThrow(
      'The allowed maximum operations in a JSON patch is 10000, got 10001',
    );
    expect(applyJsonPatch({}, operations.slice(1))).toEqual({});
  });

  test('copies that double a value again and again are stopped', () => {
    const doubling = Array.from({ length: 64 }, () => copy('', '/-'));
    expect(() => applyJsonPatch(['x'.repeat(100)], doubling)).toThrow(
      expect.objectContaining({ code: 'LimitExceeded' }),
    );
  });

  test('a value that is put into itself again and again does not become deeper than a body may be', () => {
    const doubling: unknown[] = [];
    for (let path = '/a'; path.length < 10_000; path += path) doubling.push(copy('/a', `${path}/a`));
    const swaps = Array.from({ length: 60 }, () => [
      move('/a', '/b/b/b/a'),
      move('/b', '/a'),
      add('/b', { b: { b: {} } }),
    ]);
    const target = { a: { a: {} }, b: { a: {}, b: { b: {} } } };
    for (const patch of [doubling, swaps.flat()])
      expect(() => applyJsonPatch(target, patch)).toThrow(expect.objectContaining({ code: 'LimitExceeded' }));
    expect(applyJsonPatch(target, [copy('/b', '/a/a/b')])).toEqual({ ...target, a: { a: { b: target.b } } });
  });

  test('moving a large value to and fro is bounded', () => {
    const target = { a: Array.from({ length: 20_000 }, () => 1), b: {} };
    const patch = Array.from({ length: 5000 }, () => [move('/a', '/b/a'), move('/b/a', '/a')]).flat();
    expect(() => applyJsonPatch(target, patch)).toThrow(expect.objectContaining({ code: 'LimitExceeded' }));
  });

  test('one operation does as a model on plain values does, or refuses and reports it', () => {
    const key = fc.constantFrom('a', 'b', '0', '1', '-', '__proto__');
    const path = fc.array(key, { maxLength: 3 }).map((keys) => keys.map((step) => `/${step}`).join(''));
    const value = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 3 },
        fc.constantFrom(null, 1, 'x'),
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(key, tie('value'), { maxKeys: 3 }),
      ),
    })).value;
    const operation = fc.oneof(
      fc.record({ op: fc.constantFrom('add', 'replace', 'test'), path, value }),
      fc.record({ op: fc.constant('remove'), path }),
      fc.record({ op: fc.constantFrom('move', 'copy'), from: path, path }),
    );
    fc.assert(
      fc.property(value, fc.array(operation, { maxLength: 6 }), (target, patch) => {
        const before = JSON.stringify([target, patch]);
        let expected: unknown = target;
        let failed = false;
        for (const step of patch) {
          // One after the other, each on a copy that shares nothing: what sharing inside one patch must not change.
          try {
            expected = applyJsonPatch(JSON.parse(JSON.stringify(expected)), [step]);
          } catch (error) {
            if (!isSluiceError(error, 'InvalidInput')) throw error;
            failed = true;
            break;
          }
        }
        if (failed) expect(() => applyJsonPatch(target, patch)).toThrow(/cannot be applied/);
        else expect(JSON.stringify(applyJsonPatch(target, patch))).toBe(JSON.stringify(expected));
        expect(JSON.stringify([target, patch])).toBe(before);
      }),
      { numRuns: runs(100) },
    );
  });
});
