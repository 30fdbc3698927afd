import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import { type GitServer, startGitServer } from '../support/git/git-server.ts';
import { openStore } from '../support/open-store.ts';
import { anna, type Scratch, scratchRepository } from '../support/scratch-repository.ts';
import { serverTrust } from '../support/trust.ts';

function connect(scratch: Scratch, server: GitServer): Promise<RevisionStore> {
  return openStore(`${server.url}/packages.git`, join(scratch.folder, 'one'));
}

test('the documented hook permits records at their refs, also where it was installed after the registration', async () => {
  await using scratch = await scratchRepository();
  const refused = join(scratch.folder, 'refused');
  const keys = join(scratch.folder, 'allowed-signers');
  const { publicKey } = serverTrust.signer();
  await writeFile(keys, `sluice ${publicKey}\n`);
  const binary = fileURLToPath(new URL('../../bin/sluice.js', import.meta.url));
  const verify = `'${process.execPath}' '${binary}' verify --pre-receive --allowed-signers '${keys}'`;
  const server = await startGitServer({
    root: scratch.folder,
    hooks: { 'pre-receive': `#!/bin/sh\ntest -e '${refused}' && exit 1\nexec ${verify}\n` },
  });
  await writeFile(refused, '');
  const store = await connect(scratch, server);
  await store.close();
  await rm(refused);
  const next = await connect(scratch, server);
  await next.create('packages', { package: 'shop', workspace: 'v1', source: { type: 'init' } }, anna);
  const refs = await scratch.git('for-each-ref', '--format=%(refname)');
  expect(refs).toContain('refs/sluice/records/');
  expect(refs).not.toContain('sluice-records');
  expect(refs).not.toContain('probe');
  await next.close();
  await server.close();
});
