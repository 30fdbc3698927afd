import { expect, test } from 'vitest';
import { approvedMetadata, withMetadata } from './object-metadata.ts';
import { emptyRecord } from './record.ts';

const owner = (uid: string) => ({ kind: 'PackageVariant', name: 'web', uid });

test('what an editor writes does not count for approvals until a user who may approve writes it', () => {
  const first = withMetadata(emptyRecord('c'), { labels: { site: 'east' }, ownerReferences: [owner('1')] });
  expect(first.unapproved).toBeUndefined();
  const edited = withMetadata(first, {
    ...{ labels: { site: 'east', tier: 'canary' }, ownerReferences: [owner('1'), owner('2')] },
    byEditor: true,
  });
  expect(edited.unapproved).toEqual({ labels: ['tier'], owners: ['2'] });
  expect(approvedMetadata(edited)).toEqual({ labels: { site: 'east' }, owners: [owner('1')] });
  // A write of the same values, as of a client that read them, is no approval of them.
  const { labels, ownerReferences } = edited;
  const rewritten = withMetadata(edited, { labels, ownerReferences });
  expect(rewritten.unapproved).toEqual(edited.unapproved);
  const removed = withMetadata(rewritten, { labels: { site: 'east' } });
  expect(removed.unapproved).toEqual({ labels: [], owners: ['2'] });
  const approved = withMetadata(removed, { labels: { site: 'east', tier: 'canary' }, ownerReferences: [] });
  expect(approved.unapproved).toBeUndefined();
  expect(approvedMetadata(approved).labels).toEqual({ site: 'east', tier: 'canary' });
});

test('a value that an editor changes does not count, and what a request leaves out stays', () => {
  const before = withMetadata(emptyRecord('c'), { labels: { tier: 'prod' }, annotations: { note: 'x' } });
  const after = withMetadata(before, { labels: { tier: 'canary' }, byEditor: true });
  expect(after).toMatchObject({ labels: { tier: 'canary' }, annotations: { note: 'x' } });
  expect(after).not.toHaveProperty('byEditor');
  expect(approvedMetadata(after).labels).toEqual({});
  expect(approvedMetadata(undefined)).toEqual({ labels: {}, owners: [] });
});
