import * as fc from 'fast-check';
import { loadAll } from 'js-yaml';
import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { runs } from '../../../test/support/runs.ts';
import { mergePackage } from './merge-package.ts';
import type { PackageFiles } from './package-files.ts';

const scalar = fc.constantFrom('a', 'true', '0755', '"0755"', "'yes'", '1.10', 'null', 'long text: with "marks"', '');
const written = fc.oneof(scalar, fc.constantFrom('x', 'y', 'z')).map((text) => {
  const plain = /^(?:true|0755|1\.10|null|[a-z]|)$/.test(text) || /^["'].*["']$/.test(text);
  return plain ? text : JSON.stringify(text);
});
const containers = fc.uniqueArray(
  fc.record({ name: fc.constantFrom('app', 'proxy', 'log'), image: written, arg: fc.option(written) }),
  { selector: ({ name }) => name, maxLength: 3 },
);
const resource = fc
  .record({
    kind: fc.constantFrom('Deployment', 'Service'),
    name: fc.constantFrom('one', 'two', 'three'),
    data: fc.dictionary(fc.constantFrom('k1', 'k2', 'k3', '__proto__'), written, { maxKeys: 3 }),
    containers,
    comment: fc.boolean(),
    wide: fc.boolean(),
    mark: fc.boolean(),
  })
  .map(({ kind, name, data, containers: list, comment, wide, mark }) =>
    [
      ...(comment ? ['# about this one'] : []),
      'apiVersion: apps/v1',
      `kind: ${kind}`,
      `metadata:${mark ? ` # kpt-merge: /${name}` : ''}`,
      `  name: ${name}`,
      'data:',
      ...Object.entries(data).map(([key, value]) => `  ${key}: ${value}${comment ? ' # why' : ''}`),
      'spec:',
      `  containers:${list.length === 0 ? ' []' : ''}`,
      ...list.flatMap((one) => [
        `${wide ? '    ' : '  '}- name: ${one.name}`,
        `${wide ? '    ' : '  '}  image: ${one.image}`,
        ...(one.arg === null ? [] : [`${wide ? '    ' : '  '}  arg: ${one.arg}`]),
      ]),
      '',
    ].join('\n'),
  );
const yamlFile = fc.array(resource, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('---\n'));
const odd = fc.oneof(
  fc.constantFrom('', '---\n', 'a: [', 'a: &x 1\nb: *x\n', '# only a comment\n', 'a: 1\na: 2\n', '- 1\n'),
  fc.string(),
);
const files = fc
  .dictionary(fc.constantFrom('a.yaml', 'b.yaml', 'sub/c.yaml', 'sub/Kptfile', 'README.md'), fc.oneof(yamlFile, odd), {
    maxKeys: 4,
  })
  .map(
    (texts): PackageFiles => new Map(Object.entries(texts).map(([path, text]) => [path, { data: Buffer.from(text) }])),
  );

function texts(tree: PackageFiles): Record<string, string> {
  return Object.fromEntries([...tree].sort().map(([path, { data }]) => [path, data.toString('latin1')]));
}

/** All documents of a package, in one order. */
function meaning(tree: PackageFiles): string[] {
  return [...tree]
    .flatMap(([path, { data }]) => {
      try {
        const documents = (loadAll(data.toString('utf8')) as unknown[]).filter(
          (one) => one !== null && one !== undefined,
        );
        return documents.map((one) => stringify(one, { sortMapEntries: true, version: '1.1' }));
      } catch {
        return [`${path} ${data.toString('latin1')}`];
      }
    })
    .sort();
}

describe('a merge of packages', () => {
  test('without a change upstream, everything local stays byte for byte', () => {
    fc.assert(
      fc.property(files, files, (local, original) => {
        expect(texts(mergePackage(local, original, original).files)).toEqual(texts(local));
      }),
      { numRuns: runs(100) },
    );
  });

  test('without a local change, the result is what upstream is, byte for byte unless resources are marked', () => {
    fc.assert(
      fc.property(files, files, (original, updated) => {
        const { files: merged, keptLocal } = mergePackage(original, original, updated);
        expect(meaning(merged)).toEqual(meaning(updated));
        const marked = Object.values(texts(original)).some((text) => text.includes('kpt-merge:'));
        if (!marked) expect(texts(merged)).toEqual(texts(updated));
        expect(keptLocal).toEqual([]);
      }),
      { numRuns: runs(100) },
    );
  });

  test('the same change on both sides changes nothing', () => {
    fc.assert(
      fc.property(files, files, (original, updated) => {
        expect(meaning(mergePackage(updated, original, updated).files)).toEqual(meaning(updated));
      }),
      { numRuns: runs(100), examples: [[new Map(), new Map([['sub/Kptfile', { data: Buffer.from('?') }]])]] },
    );
  });

  test('whatever the three sides are, the result is as readable as they are, and always the same', () => {
    fc.assert(
      fc.property(files, files, files, (local, original, updated) => {
        const { files: merged } = mergePackage(local, original, updated);
        const readable = [local, original, updated].every((side) =>
          [...side].every(([path, { data }]) => parses(path, data)),
        );
        if (readable) for (const [path, { data }] of merged) expect(parses(path, data)).toBe(true);
        expect(texts(mergePackage(local, original, updated).files)).toEqual(texts(merged));
      }),
      { numRuns: runs(300) },
    );
  });
});

function parses(path: string, data: Buffer): boolean {
  if (path === 'README.md') return true;
  try {
    loadAll(data.toString('utf8'));
    return true;
  } catch {
    return false;
  }
}
