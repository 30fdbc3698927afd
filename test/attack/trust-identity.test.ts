import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { identityRef } from '../../src/package/model/identity/layout.ts';
import { openPackageRepository } from '../../src/package/store/opening/open-package-repository.ts';
import type { ServerTrust } from '../../src/package/store/opening/open-repository-trust.ts';
import type { PackageRepository } from '../../src/package/store/package-repository.ts';
import { REPOSITORY_SCOPE, type RepositoryIdStatement } from '../../src/package/trust/repository-id.ts';
import { formatStatement, payloadOf, STATEMENT_VERSION } from '../../src/package/trust/statement/statement.ts';
import type { StatementSigner } from '../../src/package/trust/statement/statement-signature.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { type Fixture, fixture } from '../support/fixture.ts';
import { git } from '../support/git/git-cli.ts';
import { newServerTrust, newSigner } from '../support/trust.ts';

const T = '2026-01-01T00:00:00Z';
const MAIN_LAYOUT = { branch: 'main', directory: '', recordPrefix: 'refs/sluice/records/' };

let trust: ServerTrust;
let thief: StatementSigner;
let world: Fixture;
beforeEach(async () => {
  trust = newServerTrust();
  thief = newSigner();
  const { fingerprint, publicKey } = thief;
  trust.ledger.addKey({ fingerprint, publicKey, comment: '', origin: 'added', addedAt: T });
  trust.ledger.revokeKey(fingerprint, T);
  world = await fixture(new ManualClock(Date.parse(T)), trust);
});
afterEach(() => world[Symbol.asyncDispose]());

/** Eve writes an id with a key that is revoked. */
async function writeId(repo: string, repository: string, previous: string | null): Promise<void> {
  const statement: RepositoryIdStatement = {
    ...{ statement: STATEMENT_VERSION, kind: 'repository', repository, ...REPOSITORY_SCOPE, sequence: 1, previous },
  };
  const payload = payloadOf(statement);
  const message = formatStatement('x', { payload, signature: await thief.sign(payload) });
  git(repo, [
    'update-ref',
    identityRef(MAIN_LAYOUT),
    git(repo, ['commit-tree', git(repo, ['mktree'], ''), '-m', message]),
  ]);
}

async function open(name = 'apps'): Promise<PackageRepository> {
  const { clock, policyFor, folder, client } = world;
  return openPackageRepository(await client.get(repositoryKind, { name }), {
    ...{
      trust,
      clock,
      policyFor,
      dataFolder: join(folder, 'second'),
      dependentsOf: () => [],
      onChange: () => undefined,
    },
  });
}

test.each(['constructor', '__proto__', 'x\n\u001b[31m', '', 'x'.repeat(65)])(
  'a pushed id %j does not keep a repository from being opened',
  async (id) => {
    const repo = await world.bare('apps');
    await writeId(repo, id, null);
    await world.client.create(repositoryKind, { metadata: { name: 'apps' }, spec: { git: { repo } } });
    const opened = await open();
    expect(opened.trust.repository).toMatch(/^[A-Za-z0-9-]{1,64}$/);
    expect(opened.trust.revocationOf(thief.fingerprint)).toMatchObject({ head: undefined });
    await opened.close();
  },
);
