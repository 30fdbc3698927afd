import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { initBare, refsOf, temporaryFolder } from '../../../../test/support/git/git-cli.ts';
import { newKey, type SshServer, sshServerProblem, startSshServer } from '../../../../test/support/git/ssh-server.ts';
import { skipFor } from '../../../../test/support/skip.ts';
import { commitOf } from '../../git-repository.conformance.ts';
import type { GitRemote, SshCredentials } from '../../git-repository.ts';
import { openRepository } from '../../open/open-repository.ts';

/** One pass over ssh; `ssh-remotes.process.test.ts` has everything else about it. */
describe('a remote over ssh', skipFor(sshServerProblem()), () => {
  let place: ReturnType<typeof temporaryFolder>;
  let server: SshServer;

  beforeAll(async () => {
    place = temporaryFolder();
    server = await startSshServer({ folder: place.path });
  });

  afterAll(async () => {
    await server.close();
    place.remove();
  });

  test.each(['auto', 'git'] as const)('is pushed to and listed, and its key is checked (%s)', async (transport) => {
    const origin = initBare(join(place.path, `${transport}-origin.git`));
    const repository = await openRepository(initBare(join(place.path, `${transport}.git`)), { transport });
    const remoteWith = (changes: Partial<SshCredentials> = {}): GitRemote => ({
      url: `${server.url}${origin}`,
      credentials: async () => ({ ssh: { ...server.credentials, ...changes } }),
    });
    try {
      const commit = await repository.writeCommit(commitOf(await repository.editTree(undefined, new Map())));
      await repository.push(remoteWith(), [{ type: 'create', ref: 'refs/heads/main', new: commit }]);
      expect([...refsOf(origin)]).toEqual([['refs/heads/main', commit]]);
      expect(await repository.listRemoteRefs(remoteWith())).toEqual([{ name: 'refs/heads/main', oid: commit }]);
      const foreign = newKey(place.path, `${transport}-foreign`);
      await expect(repository.listRemoteRefs(remoteWith({ privateKey: foreign.privateKey }))).rejects.toMatchObject({
        code: 'Refused',
      });
    } finally {
      await repository.close();
    }
  });
});
