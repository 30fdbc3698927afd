import { expect, test } from 'vitest';
import { carriedMetadata, describeMetadata } from './carried-metadata.ts';
import { compareContents, compareRevisions } from './compare-revisions.ts';
import { contentsView } from './contents-digest.ts';
import { type RevisionView, revisionView } from './revision-view.ts';

const view = (changes: Partial<RevisionView> = {}): RevisionView => ({
  ...{ name: 'apps.web.v1', uid: 'u', packageName: 'web', workspaceName: 'v1', revision: 1, lifecycle: 'Published' },
  ...{ isLatest: true, labels: {}, annotations: {}, owners: [], ...changes },
});
const inCluster = { hasDatabase: false };

test('revisions that are alike have no differences', () => {
  expect(compareRevisions([view()], [view()], inCluster)).toEqual([]);
});

test.each([
  ['uid', { uid: 'other' }],
  ['package', { packageName: 'net/web' }],
  ['workspace', { workspaceName: 'v2' }],
  ['revision', { revision: 2 }],
  ['lifecycle', { lifecycle: 'DeletionProposed' }],
  ['latest', { isLatest: false }],
] as const)('a difference in %s is reported with a next step', (field, changes) => {
  const found = compareRevisions([view()], [view(changes)], inCluster);
  expect(found).toEqual([expect.objectContaining({ name: 'apps.web.v1', field, next: expect.stringMatching(/./) })]);
});

test('a revision that one of them lacks is reported by its state', () => {
  const draft = view({ name: 'apps.web.v2', revision: 0, lifecycle: 'Draft' });
  expect(compareRevisions([view()], [draft], inCluster)).toMatchObject([
    { name: 'apps.web.v1', field: 'existence', porch: 'Published (revision 1)', sluice: '-' },
    { name: 'apps.web.v2', field: 'existence', porch: '-', sluice: 'Draft' },
  ]);
});

test('a draft that Porch keeps in its database has the next steps for that', () => {
  const draft = view({ revision: 0, lifecycle: 'Draft' });
  expect(compareRevisions([draft], [], { hasDatabase: true })[0]?.next).toContain('--db-push-drafts-to-git');
  expect(compareRevisions([view()], [], { hasDatabase: true })[0]?.next).not.toContain('database');
});

test('contents that only one server shows differ, and those that none shows do not', () => {
  const files = contentsView({ Kptfile: 'a' });
  expect(compareContents('r', undefined, undefined)).toBeUndefined();
  expect(compareContents('r', files, undefined)).toMatchObject({ field: 'contents', sluice: '-' });
  expect(compareContents('r', files, contentsView({ Kptfile: 'a' }))).toBeUndefined();
  const many = contentsView({ a: '1', b: '1', c: '1', d: '1', e: '1' });
  expect(compareContents('r', many, contentsView({}))?.next).toContain('a, b, c and 2 more');
});

test('metadata that Sluice lacks is carried over, and a value that it has stays', () => {
  const owner = { apiVersion: 'config.porch.kpt.dev/v1alpha1', kind: 'PackageVariant', name: 'web', uid: 'p' };
  const porch = view({ labels: { tier: 'front', team: 'a' }, annotations: { note: 'x' }, owners: [owner] });
  const carried = carriedMetadata(porch, view({ labels: { tier: 'back' } }));
  expect(carried).toEqual({ labels: { team: 'a' }, annotations: { note: 'x' }, owners: [owner] });
  expect(carried && describeMetadata(carried)).toBe('label team=a, annotation note, owner PackageVariant/web');
  // The uid of an owner is another one in each cluster.
  expect(carriedMetadata(porch, { ...porch, owners: [{ ...owner, uid: 's' }] })).toBeUndefined();
  expect(compareRevisions([porch], [view({ labels: { tier: 'back' } })], inCluster)).toMatchObject([
    { field: 'metadata.labels[tier]', porch: 'front', sluice: 'back' },
  ]);
});

test('reads a revision of older versions of Porch, without what servers set', () => {
  const labels = { 'kpt.dev/latest-revision': 'true', team: 'a' };
  const annotations = { 'sluice.dev/problem': 'x', 'kubectl.kubernetes.io/last-applied-configuration': '{}' };
  const metadata = { name: 'apps.web.v1', uid: 'u', resourceVersion: '1', creationTimestamp: '', labels, annotations };
  const spec = { packageName: 'web', repository: 'apps', workspaceName: 'v1', revision: 'v3', lifecycle: 'Published' };
  const object = { apiVersion: 'porch.kpt.dev/v1alpha1', kind: 'PackageRevision', metadata, spec } as never;
  expect(revisionView(object)).toEqual(view({ revision: 3, labels: { team: 'a' } }));
});
