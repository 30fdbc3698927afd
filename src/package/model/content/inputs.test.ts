import { describe, expect, test } from 'vitest';
import { bindInputs, changedInputs, defaultInputs, type PackageInputs } from './inputs.ts';

const CLAIM = 'ipam.resource.nephio.org/v1alpha1.IPClaim.n3';

function inputs(
  content: string,
  objects: Record<string, string> = {},
  files: Record<string, string> = {},
): PackageInputs {
  const objectMap = new Map(Object.entries(objects));
  const fileMap = new Map(Object.entries(files));
  return { content, object: (type) => objectMap.get(type), file: (path) => fileMap.get(path) };
}

describe('defaultInputs', () => {
  test('is the object that the type names, if the package has it', () => {
    expect(defaultInputs(CLAIM, inputs('c1', { [CLAIM]: 'o1' }))).toEqual([`object:${CLAIM}`]);
    expect(defaultInputs(CLAIM, inputs('c1'))).toEqual(['content']);
    expect(defaultInputs('Rendered', inputs('c1', { Rendered: 'o1' }))).toEqual(['content']);
  });
});

describe('bindInputs and changedInputs', () => {
  const references = ['file:a.yaml', 'content', `object:${CLAIM}`, 'content', 'file:gone'];
  const then = inputs('c1', { [CLAIM]: 'o1' }, { 'a.yaml': 'f1' });

  test('binds each reference once, in one order', () => {
    const bound = bindInputs(references, then);
    expect(Object.entries(bound)).toEqual([
      ['content', 'c1'],
      ['file:a.yaml', 'f1'],
      ['file:gone', 'absent'],
      [`object:${CLAIM}`, 'o1'],
    ]);
    expect(changedInputs(bound, then)).toEqual([]);
  });

  test('names what changed, what vanished and what appeared', () => {
    const bound = bindInputs(references, then);
    expect(changedInputs(bound, inputs('c2', { [CLAIM]: 'o1' }, { 'a.yaml': 'f1' }))).toEqual(['content']);
    expect(changedInputs(bound, inputs('c1', {}, { 'a.yaml': 'f1' }))).toEqual([`object:${CLAIM}`]);
    expect(changedInputs(bound, inputs('c1', { [CLAIM]: 'o1' }, { 'a.yaml': 'f2', gone: 'f' }))).toEqual([
      'file:a.yaml',
      'file:gone',
    ]);
  });

  test('refuses a reference that names no input', () => {
    for (const reference of ['', 'contents', 'tree:x', '__proto__', 'constructor']) {
      expect(() => bindInputs([reference], then)).toThrow(expect.objectContaining({ code: 'InvalidInput' }));
    }
  });

  test('a reference of an unknown form always counts as changed', () => {
    expect(changedInputs({ 'tree:x': 'unknown', content: 'c1' }, then)).toEqual(['tree:x']);
    expect(changedInputs(JSON.parse('{"__proto__":"x"}'), then)).toEqual(['__proto__']);
  });

  test('names of files are no names of properties', () => {
    const bound = bindInputs(['file:__proto__', 'file:constructor'], then);
    expect(bound).toEqual({ 'file:__proto__': 'absent', 'file:constructor': 'absent' });
  });
});

test('a digest of the form of earlier versions still counts while the object has it', () => {
  const now = { ...inputs('c1', { [CLAIM]: 'o2:new' }), formerObject: () => 'old' };
  const reference = `object:${CLAIM}`;
  expect(changedInputs({ [reference]: 'old' }, now)).toEqual([]);
  expect(changedInputs({ [reference]: 'other' }, now)).toEqual([reference]);
  // A digest of the new form is never compared with the old one.
  expect(changedInputs({ [reference]: 'o2:other' }, { ...now, formerObject: () => 'o2:other' })).toEqual([reference]);
});
