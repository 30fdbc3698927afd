import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import {
  adoptionRef,
  deletionProposedRef,
  draftRef,
  identityRef,
  MAX_REVISION,
  mainRef,
  packagePath,
  parseRef,
  proposedRef,
  RECORD_BRANCHES,
  RECORD_REFS,
  type RepositoryLayout,
  recordRef,
  tagRef,
  tombstoneRef,
  unsignedRecordUid,
  watchedPrefixes,
} from './layout.ts';

const root: RepositoryLayout = { branch: 'main', directory: '', recordPrefix: RECORD_REFS };
const scoped: RepositoryLayout = { branch: 'release/1', directory: 'net/edge', recordPrefix: RECORD_BRANCHES };
const upf = { repository: 'blueprints', package: 'free5gc/upf', workspace: 'v1' };

describe('ref names', () => {
  test('are those of Porch', () => {
    expect(mainRef(root)).toBe('refs/heads/main');
    expect(draftRef(root, upf)).toBe('refs/heads/drafts/free5gc/upf/v1');
    expect(proposedRef(root, upf)).toBe('refs/heads/proposed/free5gc/upf/v1');
    expect(tagRef(root, 'free5gc/upf', 'v3')).toBe('refs/tags/free5gc/upf/v3');
    expect(deletionProposedRef(root, 'free5gc/upf', 'v3')).toBe('refs/heads/deletionProposed/free5gc/upf/v3');
    expect(recordRef(root, 'free5gc/upf', 'v1')).toBe('refs/sluice/records/free5gc/upf/v1');
  });

  test('of the repository are beside the records', () => {
    expect(identityRef(root)).toBe('refs/sluice/repository');
    expect(adoptionRef(root)).toBe('refs/sluice/adopted');
    expect(identityRef(scoped)).toBe('refs/heads/sluice-repository');
    expect(adoptionRef(scoped)).toBe('refs/heads/sluice-adopted');
    for (const layout of [root, scoped]) {
      for (const ref of [identityRef(layout), adoptionRef(layout), tombstoneRef(layout, 'upf', 'v1')]) {
        expect(parseRef(layout, ref)).toEqual({ kind: 'other' });
        expect(watchedPrefixes(layout).some((prefix) => ref.startsWith(prefix))).toBe(true);
      }
    }
  });

  test('of records without a signature are recognised by the uid', () => {
    const uid = '0b6f2a5c-0a8f-5b0e-9c53-0d7c6f1f3a10';
    expect(unsignedRecordUid(root, `refs/sluice/records/${uid}`)).toBe(uid);
    expect(unsignedRecordUid(scoped, `refs/heads/sluice-records/${uid}`)).toBe(uid);
    expect(unsignedRecordUid(root, recordRef(root, 'free5gc/upf', 'v1'))).toBeUndefined();
    expect(unsignedRecordUid(root, recordRef(root, 'upf', uid))).toBeUndefined();
    expect(unsignedRecordUid(root, `refs/tags/${uid}`)).toBeUndefined();
  });

  test('have the directory of the repository before the package', () => {
    expect(packagePath(scoped, 'upf')).toBe('net/edge/upf');
    expect(draftRef(scoped, upf)).toBe('refs/heads/drafts/net/edge/free5gc/upf/v1');
    expect(tagRef(scoped, 'upf', 'v3')).toBe('refs/tags/net/edge/upf/v3');
    expect(recordRef(scoped, 'net/edge/upf', 'v1')).toBe('refs/heads/sluice-records/net/edge/upf/v1');
  });
});

describe('parseRef', () => {
  test.each([
    ['refs/heads/main', { kind: 'main' }],
    ['refs/heads/drafts/a/b/v1.2.3', { kind: 'draft', package: 'a/b', workspace: 'v1.2.3' }],
    ['refs/heads/proposed/a/w', { kind: 'proposed', package: 'a', workspace: 'w' }],
    ['refs/heads/deletionProposed/a/v4', { kind: 'deletionProposed', package: 'a', version: 'v4' }],
    ['refs/heads/deletionProposed/a/main', { kind: 'deletionProposed', package: 'a', version: 'main' }],
    ['refs/tags/a/v7', { kind: 'published', package: 'a', version: 'v7', revision: 7 }],
    ['refs/tags/a/v2.0.0', { kind: 'published', package: 'a', version: 'v2.0.0', revision: -1 }],
    ['refs/tags/a/v0', { kind: 'published', package: 'a', version: 'v0', revision: -1 }],
    ['refs/tags/a/v01', { kind: 'published', package: 'a', version: 'v01', revision: -1 }],
    ['refs/tags/a/v1e3', { kind: 'published', package: 'a', version: 'v1e3', revision: -1 }],
    ['refs/tags/a/v-1', { kind: 'published', package: 'a', version: 'v-1', revision: -1 }],
    ['refs/tags/a/v999999999', { kind: 'published', package: 'a', version: 'v999999999', revision: MAX_REVISION }],
    ['refs/tags/a/v1000000000', { kind: 'published', package: 'a', version: 'v1000000000', revision: -1 }],
    ['refs/sluice/records/a/b/v1', { kind: 'record', package: 'a/b', path: 'a/b', workspace: 'v1' }],
    ['refs/sluice/records/u', { kind: 'other' }],
    ['refs/sluice/records/0b6f2a5c-0a8f-5b0e-9c53-0d7c6f1f3a10', { kind: 'other' }],
    ['refs/sluice/records/', { kind: 'other' }],
    ['refs/sluice/repository', { kind: 'other' }],
    ['refs/sluice/adopted', { kind: 'other' }],
    ['refs/sluice/deleted/a%2Fv1', { kind: 'other' }],
    ['refs/tags/v1', { kind: 'other' }],
    ['refs/heads/drafts/w', { kind: 'other' }],
    ['refs/heads/drafts', { kind: 'other' }],
    ['refs/heads/main/x', { kind: 'other' }],
    ['refs/heads/feature', { kind: 'other' }],
    ['refs/pull/1/head', { kind: 'other' }],
    ['refs/heads/drafts//w', { kind: 'other' }],
    ['refs/heads/drafts/a/', { kind: 'other' }],
    ['', { kind: 'other' }],
  ])('%s', (ref, meaning) => {
    expect(parseRef(root, ref)).toEqual(meaning);
  });

  test('reads only its own directory', () => {
    expect(parseRef(scoped, 'refs/tags/net/edge/upf/v1')).toEqual({
      kind: 'published',
      package: 'upf',
      version: 'v1',
      revision: 1,
    });
    expect(parseRef(scoped, 'refs/heads/release/1')).toEqual({ kind: 'main' });
    const record = { kind: 'record', package: 'upf', path: 'net/edge/upf', workspace: 'v1' };
    expect(parseRef(scoped, 'refs/heads/sluice-records/net/edge/upf/v1')).toEqual(record);
    for (const ref of [
      'refs/tags/net/edge/v1',
      'refs/tags/net/edge//v1',
      'refs/tags/net/edgy/upf/v1',
      'refs/tags/net/v1',
      'refs/heads/drafts/other/upf/v1',
      'refs/heads/main',
      'refs/heads/sluice-records/net/core/upf/v1',
      'refs/heads/sluice-records/net/edge/v1',
    ]) {
      expect(parseRef(scoped, ref)).toEqual({ kind: 'other' });
    }
  });

  test('reads back what the other functions write', () => {
    const segment = fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,8}[a-z0-9])?$/);
    const path = fc.array(segment, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('/'));
    fc.assert(
      fc.property(fc.constantFrom(root, scoped), path, segment, (layout, packageName, workspace) => {
        const key = { repository: 'r', package: packageName, workspace };
        const about = { package: packageName };
        expect(parseRef(layout, draftRef(layout, key))).toEqual({ kind: 'draft', ...about, workspace });
        expect(parseRef(layout, proposedRef(layout, key))).toEqual({ kind: 'proposed', ...about, workspace });
        expect(parseRef(layout, deletionProposedRef(layout, packageName, workspace))).toEqual({
          kind: 'deletionProposed',
          ...about,
          version: workspace,
        });
        expect(parseRef(layout, tagRef(layout, packageName, workspace))).toMatchObject({
          kind: 'published',
          ...about,
          version: workspace,
        });
        const path = packagePath(layout, packageName);
        expect(parseRef(layout, recordRef(layout, path, workspace))).toEqual({
          kind: 'record',
          ...about,
          path,
          workspace,
        });
      }),
      { numRuns: runs(100) },
    );
  });

  test('gives every ref a meaning, and a watched prefix to each that is not `other`', () => {
    const piece = fc.constantFrom(
      'refs',
      'heads',
      'tags',
      'drafts',
      'proposed',
      'sluice',
      'records',
      'net',
      'edge',
      '',
      '..',
      '.git',
      '__proto__',
      'v1',
      '\n',
    );
    fc.assert(
      fc.property(fc.constantFrom(root, scoped), fc.array(piece, { maxLength: 8 }), (layout, pieces) => {
        const ref = pieces.join('/');
        const meaning = parseRef(layout, ref);
        if (meaning.kind === 'other') return;
        expect(watchedPrefixes(layout).some((prefix) => ref.startsWith(prefix))).toBe(true);
        if ('package' in meaning) expect(meaning.package).not.toBe('');
      }),
      { numRuns: runs(2000) },
    );
  });
});
