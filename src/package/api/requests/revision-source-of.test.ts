import { expect, test } from 'vitest';
import { packageRevisionKind } from '../../../resource/kinds/porch/package-revision.ts';
import { revisionSourceOf } from './revision-source-of.ts';

test('a secret without a name is none, as clients written in Go send it', () => {
  const address = { repo: 'https://git.example.com/apps.git', ref: 'main', directory: 'web' };
  const sourceWith = (name: string) => {
    const upstreamRef = { type: 'git', git: { ...address, secretRef: { name } } };
    const spec = {
      packageName: 'web',
      repository: 'apps',
      workspaceName: 'v1',
      tasks: [{ type: 'clone', clone: { upstreamRef } }],
    };
    return revisionSourceOf(packageRevisionKind.complete({ metadata: { name: 'x' }, spec } as never));
  };
  expect(sourceWith('')).toEqual({ type: 'clone', upstream: { git: address } });
  expect(sourceWith('a')).toEqual({ type: 'clone', upstream: { git: { ...address, secretRef: { name: 'a' } } } });
});
