import { expect, test } from 'vitest';
import { checkPackageSize, depthProblem, MAX_FILES } from './package-size.ts';

const paths = (count: number, path: (index: number) => string) =>
  new Map(Array.from({ length: count }, (_, index): [string, string] => [path(index), '']));

test('folders count as well as files, each once', () => {
  expect(() =>
    checkPackageSize(
      'p',
      paths(9900, (i) => `d${i}/a/b/c/d/e/f`),
    ),
  ).toThrow(
    'p would have 9900 files in more than 10100 folders; a package has at most 20000 files and folders together',
  );
  expect(() =>
    checkPackageSize(
      'p',
      paths(9900, (i) => `a/b/c/d/e/d${i}/f`),
    ),
  ).not.toThrow();
  expect(() =>
    checkPackageSize(
      'p',
      paths(250, (i) => `${i}/${'a/'.repeat(1900)}x`),
    ),
  ).toThrow('folders together');
});

test('links and submodules count, too', () => {
  const links = [...paths(9900, (i) => `links/d${i}/a/b/l`).keys()];
  expect(() => checkPackageSize('p', new Map(), links)).toThrow('p would have 9900 files in more than');
  expect(() => checkPackageSize('p', paths(MAX_FILES, String), ['link'])).toThrow('p would have 10001 files');
});

test('a new path has at most 100 folders', () => {
  expect(depthProblem(`${'a/'.repeat(100)}x`)).toBeUndefined();
  expect(depthProblem(`${'a/'.repeat(101)}x`)).toBe('it has 101 folders; a path has at most 100');
});
