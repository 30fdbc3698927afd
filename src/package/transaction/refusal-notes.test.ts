import { expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../../../test/support/git/git-cli.ts';
import type { PackageRevision } from '../model/revision/package-revision.ts';
import { RefusalNotes } from './refusal-notes.ts';

test('a registration of the same repository, with another name, folder or namespace, keeps the queued merges of the other one', () => {
  const folder = temporaryFolder();
  onTestFinished(() => folder.remove());
  /** With one proposal. */
  const open = (registration: string, proposal: string) => {
    const revision = { commit: 'a'.repeat(40), lifecycle: 'Proposed' } as PackageRevision;
    const index = { get: (name: string) => (name === proposal ? revision : undefined) };
    return new RefusalNotes({ index, mirror: folder.path, registration });
  };
  const one = open('default/apps', 'apps.web.v1');
  const others = [open('default/infra', 'infra.net.v1'), open('other/apps', 'apps.net.v1')];
  one.noteQueued('apps.web.v1', 'https://host/pulls/1');
  for (const other of others)
    for (const name of ['infra.net.v1', 'apps.net.v1'])
      for (let count = 0; count < 200; count += 1)
        other.noteNotMerged(name, { message: `${count} checks are missing` });
  expect(one.isInMergeQueue({ name: 'apps.web.v1' })).toBe(true);
  expect(open('default/apps', 'apps.web.v1').isInMergeQueue({ name: 'apps.web.v1' })).toBe(true);
});
