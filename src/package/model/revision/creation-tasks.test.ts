import { expect, test } from 'vitest';
import { isVersionOf } from '../../store/upstream-references.ts';
import { creationSources } from './creation-tasks.ts';
import type { PackageRevision } from './package-revision.ts';

const made = (record: object | undefined, annotations: readonly object[] = []) =>
  creationSources({ record, tip: { facts: { annotations } } } as unknown as PackageRevision);
const of = (task: unknown) => made({ task });
const GIT = { repo: 'https://git.example.com/bp.git', directory: '/web', ref: 'web/v1' };

test('the tasks of a revision say what it was made from', () => {
  expect(of({ type: 'clone', clone: { upstreamRef: { upstreamRef: { name: 'bp.web.v1' } } } })).toEqual([
    { upstream: 'bp.web.v1' },
  ]);
  expect(of({ type: 'clone', clone: { upstreamRef: { type: 'git', git: GIT } } })).toEqual([{ git: GIT }]);
  const upgrade = { oldUpstreamRef: { name: 'bp.web.v1' }, newUpstreamRef: { name: 'bp.web.v2' }, strategy: 'x' };
  expect(of({ type: 'upgrade', upgrade })).toEqual([{ upstream: 'bp.web.v2' }]);
  expect(of({ type: 'edit', edit: { sourceRef: { name: 'edge.web.v1' } } })).toEqual([{ copied: 'edge.web.v1' }]);
  const task = { type: 'clone', clone: { upstreamRef: { upstreamRef: { name: 'bp.web.v1' } } } };
  expect(made(undefined, [{ packageName: 'web', task }, {}])).toEqual([{ upstream: 'bp.web.v1' }]);
});

test('other tasks and nonsense name none', () => {
  for (const task of [{ type: 'init', init: {} }, { clone: 'x' }, { clone: { upstreamRef: {} } }, 'x', null, undefined])
    expect(of(task)).toEqual([]);
});

test('a version in Git is compared by address, folder, and tag or commit', () => {
  const revision = { ref: 'refs/tags/web/v1', path: 'web', commit: 'abc' } as PackageRevision;
  const url = 'https://git.example.com/bp';
  for (const ref of ['v1', 'web/v1', 'abc']) expect(isVersionOf({ ...GIT, ref }, revision, url)).toBe(true);
  for (const other of [{ ref: 'v2' }, { directory: 'db' }, { repo: 'https://git.example.com/other.git' }])
    expect(isVersionOf({ ...GIT, ...other }, revision, url)).toBe(false);
});
