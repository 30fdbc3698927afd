import { expect, test } from 'vitest';
import { ignorePatterns, leftOutBy } from './left-out-folders.ts';

const FOLDER = 'clusters/edge/web';

/** Whether a text in the file of a folder can leave out the package. */
const ignoredBy = (text: string, place = '') =>
  leftOutBy({}, (folder) => (folder === place ? ignorePatterns(text) : null), FOLDER) !== undefined;

test('a pattern that can match the folder, one above it, or its kustomization leaves it out', () => {
  for (const text of [
    ...['clusters/edge/web/', '/clusters/', 'clusters//edge', 'clusters/edge/web/cm.yaml', '/*', '**/web', '*', 'w?b'],
    ...[
      'web',
      'edge/ ',
      '*b',
      'kustomization.yaml',
      '*.yaml',
      '# a comment\n\r\n/*\r\n!/clusters\n',
      '\\web',
      ' # web*',
    ],
  ])
    expect(ignoredBy(text), text).toBe(true);
  for (const text of [
    '',
    '# web\n\n  \n',
    '!/clusters',
    '*.md',
    '.github/',
    'docs',
    '/docs/*',
    'clusters/west/**',
    '/web',
  ])
    expect(ignoredBy(text), text).toBe(false);
});

test('the file of a folder is about what is below it', () => {
  expect(['/web', 'web', 'edge'].map((text) => ignoredBy(text, 'clusters/edge'))).toEqual([true, true, false]);
  expect(['/cm.yaml', '*', 'web'].map((text) => ignoredBy(text, FOLDER))).toEqual([true, true, false]);
  expect(ignoredBy('*', 'clusters/west')).toBe(false);
});

test('spec.ignore and spec.sparseCheckout of the source count, with the next step', () => {
  const reason = (filter: Parameters<typeof leftOutBy>[0], folder = FOLDER) => leftOutBy(filter, () => null, folder);
  expect(reason({ ignore: '/*\n!/clusters' })).toContain(
    'pattern "/*" of spec.ignore of its GitRepository can match it; remove',
  );
  expect(reason({ ignore: '# nothing\n*.md' })).toBeUndefined();
  expect(reason({ directories: ['clusters/west'] })).toContain(
    'spec.sparseCheckout of its GitRepository does not name',
  );
  expect(reason({ directories: ['clusters/edge/web/sub', 'clusters/ed'] })).toBeDefined();
  for (const directory of ['clusters/edge', './clusters/edge/', FOLDER, './'])
    expect(reason({ directories: ['docs', directory] })).toBeUndefined();
});

test('each file on the way is named that is not read, apart from those outside a sparse checkout', () => {
  const unread: string[] = [];
  const read = (folder: string) => void unread.push(folder);
  expect(leftOutBy({}, read, FOLDER)).toContain('is not read yet');
  expect(unread.splice(0)).toEqual(['', 'clusters', 'clusters/edge', FOLDER]);
  expect(leftOutBy({ directories: ['clusters/edge'] }, read, FOLDER)).toBeDefined();
  expect(unread).toEqual(['clusters/edge', FOLDER]);
  expect(leftOutBy({}, () => null, '')).toBeUndefined();
});
