import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ALL_RUNS, runs } from '../../../../test/support/runs.ts';
import { isSluiceError } from '../../../foundation/sluice-error.ts';
import { checkRevisionKey, type RevisionKey, revisionName, revisionUid } from './identity.ts';

function key(packageName: string, workspace: string, repository = 'blueprints'): RevisionKey {
  return { repository, package: packageName, workspace };
}

/** What Porch reads back from a name, written from its rule: the last segment, unless the end looks like `.v1.2.3`. */
function porchWorkspace(name: string): string {
  const version = name.match(/\.v[0-9.]*[0-9]$/);
  return version === null ? name.split('.').slice(-1).join('') : version[0].slice(1);
}

describe('revisionName', () => {
  test('joins repository, path and workspace with dots', () => {
    expect(revisionName(key('basens', 'v1'))).toBe('blueprints.basens.v1');
    expect(revisionName(key('free5gc/upf/edge', 'packagevariant-3'))).toBe(
      'blueprints.free5gc.upf.edge.packagevariant-3',
    );
    expect(revisionName(key('basens', 'v1.2.3'))).toBe('blueprints.basens.v1.2.3');
  });
});

describe('revisionUid', () => {
  test('is the id that Porch gives', () => {
    expect(revisionUid('blueprints.basens.v1')).toBe('d31ab947-3c19-5487-b3ee-6671f6f29004');
    expect(revisionUid('blueprints.basens.v1', 'default')).toBe('d31ab947-3c19-5487-b3ee-6671f6f29004');
  });

  test('depends on the namespace and not on the case', () => {
    expect(revisionUid('blueprints.basens.v1', 'other')).not.toBe(revisionUid('blueprints.basens.v1'));
    expect(revisionUid('Blueprints.Basens.V1')).toBe(revisionUid('blueprints.basens.v1'));
  });

  test('is always a version 5 UUID, whatever the name', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (name) => {
        expect(revisionUid(name)).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
      }),
      { numRuns: runs(100) },
    );
  });
});

describe('checkRevisionKey', () => {
  test.each([
    key('basens', 'v1'),
    key('free5gc/upf', 'packagevariant-12'),
    key('basens', 'v1.2.3'),
    key('basens', '2'),
    key('x/v1', 'v2'),
    key('x/v1', 'main'),
    key('a'.repeat(63), 'b'.repeat(63), 'c'.repeat(63)),
  ])('takes %o', (good) => {
    expect(() => checkRevisionKey(good)).not.toThrow();
  });

  test.each([
    ['a path out of the repository', key('../x', 'v1')],
    ['an absolute path', key('/x', 'v1')],
    ['an empty segment', key('a//b', 'v1')],
    ['an empty package', key('', 'v1')],
    ['a Git folder', key('a/.git', 'v1')],
    ['a dot in a package', key('a.b', 'v1')],
    ['capitals', key('A', 'v1')],
    ['a line break', key('a\nb', 'v1')],
    ['a line break at the end', key('a\n', 'v1')],
    ['an empty workspace', key('a', '')],
    ['a slash in a workspace', key('a', 'v1/x')],
    ['two dots in a workspace', key('a', 'v1..2')],
    ['a lock file', key('a', 'v1.lock')],
    ['a long label', key('a'.repeat(64), 'v1')],
    ['a long name', key(Array(5).fill('a'.repeat(60)).join('/'), 'v1')],
    ['a bad repository', key('a', 'v1', 'r.s')],
    ['__proto__', key('__proto__', 'v1')],
  ])('refuses %s', (_, bad) => {
    expect(() => checkRevisionKey(bad)).toThrow(expect.objectContaining({ code: 'InvalidInput' }));
  });

  test('refuses a key whose name another workspace has too', () => {
    expect(revisionName(key('x/v1', '2'))).toBe(revisionName(key('x', 'v1.2')));
    expect(() => checkRevisionKey(key('x', 'v1.2'))).not.toThrow();
    expect(() => checkRevisionKey(key('x/v1', '2'))).toThrow('workspace "v1.2"');
    expect(revisionName(key('x', 'a.b'))).toBe(revisionName(key('x/a', 'b')));
    expect(() => checkRevisionKey(key('x', 'a.b'))).toThrow('workspace "b"');
  });

  test('accepted keys have names of their own, which read back as they were', () => {
    const label = fc.constantFrom('a', 'b', 'v', 'v1', 'v2', '1', '2', 'v-1');
    const workspace = fc.oneof(label, fc.constantFrom('v1.2', 'v1.2.3', 'a.b', '1.2', 'v.1', 'v1.v2'));
    const names = new Map<string, string>();
    let accepted = 0;
    fc.assert(
      fc.property(fc.array(label, { minLength: 1, maxLength: 4 }), workspace, (path, name) => {
        const candidate = key(path.join('/'), name);
        try {
          checkRevisionKey(candidate);
        } catch (error) {
          expect(isSluiceError(error, 'InvalidInput')).toBe(true);
          return;
        }
        accepted += 1;
        expect(porchWorkspace(revisionName(candidate))).toBe(candidate.workspace);
        const identity = `${candidate.package}@${candidate.workspace}`;
        expect(names.get(revisionName(candidate)) ?? identity).toBe(identity);
        names.set(revisionName(candidate), identity);
      }),
      { numRuns: runs(2000) },
    );
    if (ALL_RUNS) expect(accepted).toBeGreaterThan(0);
  });
});
