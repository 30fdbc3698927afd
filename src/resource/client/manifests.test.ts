import { describe, expect, test } from 'vitest';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { OBJECT_KINDS } from '../kinds/index.ts';
import { type ManifestErrorDetails, readManifests } from './manifests.ts';

const read = (text: string, path = 'conf/a.yaml') => readManifests([{ path, text }], OBJECT_KINDS);

function problemsOf(text: string): string[] {
  try {
    read(text);
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    expect(error.code).toBe('InvalidInput');
    const { problems } = error.details as ManifestErrorDetails;
    return problems.map(({ line, column, field, message }) => `${line}:${column} ${field} ${message}`);
  }
  throw new Error('no error');
}

const repository = (name: string, git: string) =>
  `apiVersion: config.porch.kpt.dev/v1alpha1\nkind: Repository\nmetadata:\n  name: ${name}\nspec:\n  git:\n${git}`;

describe('readManifests', () => {
  test('reads several documents with defaults, and skips empty ones', () => {
    const text = `# configuration\n---\n${repository('blue', '    repo: /srv/blue.git\n')}---\n---\n${repository('green', '    repo: https://example.org/green\n    directory: /pkgs/\n')}`;
    const manifests = read(text);
    expect(manifests.map(({ line, object }) => [line, object.metadata.name])).toEqual([
      [3, 'blue'],
      [12, 'green'],
    ]);
    expect(manifests[0]?.object).toMatchObject({
      metadata: { namespace: 'default' },
      spec: { type: 'git', git: { branch: 'main', directory: '/' } },
    });
    expect(manifests[1]?.object.spec).toMatchObject({ git: { directory: 'pkgs' } });
    expect(read('')).toEqual([]);
  });

  test('names file, line, column and field of every problem', () => {
    const text = `${repository('Blue', '    repo: ftp://x\n    branch: 3\n')}---\n${repository('green', '    repo: /x\n    brnch: x\n')}---\n${repository('red', '    {}\n')}`;
    expect(problemsOf(text)).toEqual([
      '4:3 metadata.name Invalid value: "Blue": must be lower case letters, digits or "-", start and end with a letter or digit, and have at most 63 characters',
      '7:5 spec.git.repo Invalid value: "ftp://x": must be an https:// or ssh:// URL, <user>@<host>:<path>, an http:// URL of a host that the operator permits, a file:// URL, an absolute path, or sluice:///<name>.git',
      '8:5 spec.git.branch Invalid value: 3: expected string',
      '17:5 spec.git.brnch unknown field; did you mean branch?',
      '24:3 spec.git.repo Required value',
    ]);
    expect(() => read(text, 'x.yaml')).toThrow('x.yaml:8:5: spec.git.branch: Invalid value: 3: expected string');
  });

  test('lists the kinds and versions that there are', () => {
    expect(problemsOf('apiVersion: v1\nkind: Pod\nmetadata: {name: a}')[0]).toContain(
      'Pod (v1) is not known; known kinds',
    );
    expect(problemsOf('apiVersion: sluice.dev/v9\nkind: DeliveryTarget')[0]).toContain(
      'DeliveryTarget is not known in sluice.dev/v9; it is known in sluice.dev/v1alpha1',
    );
    expect(problemsOf('kind: Pod')).toEqual(['1:1 apiVersion Required value']);
    expect(problemsOf('apiVersion: v1')).toEqual(['1:1 kind Required value']);
    expect(problemsOf('- a')[0]).toContain('expected an object');
  });

  test('finds an object that is in two files', () => {
    const text = repository('blue', '    repo: /x\n');
    const files = ['a.yaml', 'b.yaml'].map((path) => ({ path, text }));
    expect(() => readManifests(files, OBJECT_KINDS)).toThrow(
      'b.yaml:1:1: metadata.name: Repository "blue" stands in a.yaml:1 already',
    );
  });

  test('a secret that is wrong is not shown', () => {
    const text = 'apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata:\n  token: not base64!\n  other: 5\n';
    const problems = problemsOf(text).join('\n');
    expect(problems).toContain('5:3 data.token Invalid value: (not shown): must be base64');
    expect(problems).not.toContain('not base64!');
  });

  test('credentials in an address are refused and not shown', () => {
    const problems = problemsOf(repository('blue', '    repo: https://anna:hunter2@example.org/x\n')).join();
    expect(problems).toContain('must not contain a user or password');
    expect(problems).not.toContain('hunter2');
  });

  test('reports at most 20 problems and how many more', () => {
    const text = Array.from({ length: 30 }, (_, index) => `apiVersion: v1\nkind: Kind${index}\n`).join('---\n');
    expect(() => read(text)).toThrow('and 10 more');
  });
});

describe('hostile YAML', () => {
  const levels = 'abcdefghij'.split('');
  const bomb = levels
    .map(
      (name, index) =>
        `${name}: &${name} [${Array(9)
          .fill(index === 0 ? '"x"' : `*${levels[index - 1]}`)
          .join(',')}]`,
    )
    .join('\n');

  test.each([
    ['an alias bomb', bomb, 'alias count'],
    ['an alias to itself', 'a: &a [*a]', 'Required value'],
    ['an unknown alias', 'a: *b', 'alias'],
    ['deep flow nesting', '['.repeat(100_000), 'nested more than 100 levels'],
    ['deep block nesting', `${'- '.repeat(2000)}x`, 'nested more than 100 levels'],
    ['a key twice', 'kind: a\nkind: b', 'the key "kind" occurs twice'],
    ['a key that is a list', '? [a]\n: b', 'a key must be a plain value'],
    ['tabs', 'a:\n\t- b', 'Tabs are not allowed'],
    ['too many documents', '--- a\n'.repeat(6000), 'more than 5000 documents'],
    ['a huge file', 'x'.repeat(5_000_000), 'at most 4194304'],
    [
      'a key named __proto__',
      'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {__proto__: x}',
      'unknown field',
    ],
    ['an unclosed quote', 'a: "b', 'Missing closing'],
  ])('%s is refused with a place', (_name, text, message) => {
    const problems = problemsOf(text);
    expect(problems.join('\n')).toContain(message);
    expect(problems[0]).toMatch(/^\d+:\d+ /);
  });

  test('a map with very many keys is read', () => {
    const data = Array.from({ length: 20_000 }, (_, index) => `  key-${index}: "${index}"`).join('\n');
    expect(read(`apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n${data}\n`)).toHaveLength(1);
  });
});

test('a document is bounded too where a larger file is permitted', () => {
  const limits = { maxCharacters: 16 * 1024 * 1024, maxDocuments: 10 };
  const text = (length: number) => `---\na: ${'x'.repeat(length)}\n`;
  const messageOf = (given: string) => {
    try {
      readManifests([{ path: 'a.yaml', text: given }], OBJECT_KINDS, limits);
    } catch (error) {
      return (error as SluiceError).message;
    }
    return undefined;
  };
  const long = 3 * 1024 * 1024;
  expect(messageOf(text(long) + text(long))).toContain('apiVersion: Required value');
  expect(messageOf(text(100) + text(2 * long))).toContain('a document has 6291464 characters, at most 4194304');
});
