import { expect, test } from 'vitest';
import { TagNames } from './tag-names.ts';

test('a tag conflicts with one of its name, one above it, and those below it', () => {
  const refs = new Map<string, string>();
  const names = new TagNames(refs);
  const add = (ref: string) => {
    refs.set(ref, '');
    names.note(ref, 1);
  };
  for (const tag of ['a/v1', 'b/v2/x/v3/y', 'b/v2/z', 'c', 'd/v10', 'd/next/x']) add(`refs/tags/${tag}`);
  add('refs/heads/drafts/e/v1/x');
  const conflict = (tag: string) => names.conflictWith(`refs/tags/${tag}`)?.slice('refs/tags/'.length);
  expect(conflict('a/v1')).toBe('a/v1');
  expect(conflict('a/v2')).toBeUndefined();
  expect(conflict('a/v1/b/v1')).toBe('a/v1');
  expect(conflict('b/v2')).toBe('b/v2/');
  expect(conflict('b/v2/x/v3')).toBe('b/v2/x/v3/');
  expect(conflict('c/d/v1')).toBe('c');
  expect(conflict('d/v1')).toBeUndefined();
  expect(conflict('e/v1')).toBeUndefined();

  const later = new Map(refs);
  const copy = new TagNames(later, names);
  for (const tag of ['refs/tags/b/v2/z', 'refs/tags/b/v2/x/v3/y']) {
    later.delete(tag);
    copy.note(tag, -1);
  }
  expect(copy.conflictWith('refs/tags/b/v2')).toBeUndefined();
  expect(conflict('b/v2')).toBe('b/v2/');
});
