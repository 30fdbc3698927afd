import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { fsck, initBare, refsOf, temporaryFolder } from '../../../test/support/git/git-cli.ts';
import { newKey, type SshServer, sshServerProblem, startSshServer } from '../../../test/support/git/ssh-server.ts';
import { isUnknownOutcome } from '../errors.ts';
import { commitOf } from '../git-repository.conformance.ts';
import type { GitRemote, GitRepository, Oid, RefUpdate, SshCredentials } from '../git-repository.ts';
import { openRepository } from '../open-repository.ts';

const problem = sshServerProblem();

const UPDATE_HOOK = `#!/bin/sh
case "$1" in *bad*) echo 'no bad names' >&2; exit 1;; esac
`;

describe.skipIf(problem !== undefined)(
  `remotes over ssh${problem === undefined ? '' : ` (skipped: ${problem})`}`,
  () => {
    let place: ReturnType<typeof temporaryFolder>;
    let server: SshServer;
    let folder: ReturnType<typeof temporaryFolder>;
    let origin: string;
    let repository: GitRepository;
    let remote: GitRemote;
    let first: Oid;
    let second: Oid;

    beforeAll(async () => {
      place = temporaryFolder();
      server = await startSshServer({ folder: place.path });
    });

    afterAll(async () => {
      await server.close();
      place.remove();
    });

    beforeEach(async () => {
      folder = temporaryFolder();
      origin = initBare(join(folder.path, 'origin.git'));
      writeFileSync(join(origin, 'hooks-update'), UPDATE_HOOK);
      repository = await openRepository(initBare(join(folder.path, 'local.git')));
      remote = remoteWith();
      const tree = await repository.editTree(undefined, new Map([['a', { data: Buffer.from('a') }]]));
      first = await repository.writeCommit(commitOf(tree));
      second = await repository.writeCommit(commitOf(tree, [first]));
    });

    afterEach(async () => {
      await repository.close();
      folder.remove();
    });

    function remoteWith(changes: Partial<SshCredentials> = {}, url = `${server.url}${origin}`): GitRemote {
      return { url, credentials: async () => ({ ssh: { ...server.credentials, ...changes } }) };
    }

    const create = (ref: string, oid = first): RefUpdate => ({ type: 'create', ref, new: oid });

    test('pushes', async () => {
      await repository.push(remote, [create('refs/heads/main'), create('refs/heads/drafts/p/w'), create('refs/x/1')]);
      expect([...refsOf(origin).keys()]).toEqual(['refs/heads/drafts/p/w', 'refs/heads/main', 'refs/x/1']);
      fsck(origin);
    });
  },
);
