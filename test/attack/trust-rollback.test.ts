import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { wasDeleted } from '../../controllers/delivery/deletion-proof.ts';
import { openTrust, statementKeyPath, type Trust } from '../../src/app/trust/open-trust.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { generateSshKey } from '../../src/git/signing/generate-ssh-key.ts';
import { provesDeletion } from '../../src/package/index/trust/deletion-proof.ts';
import type { PublicationStatement } from '../../src/package/model/record/commit-message.ts';
import { formatRecord, parseRecord } from '../../src/package/model/record/record.ts';
import { replaceKeyFile } from '../../src/package/trust/keys/statement-key-file.ts';
import {
  newRepositoryId,
  REPOSITORY_SCOPE,
  type RepositoryIdStatement,
} from '../../src/package/trust/repository-id.ts';
import { formatStatement, payloadOf, STATEMENT_VERSION } from '../../src/package/trust/statement/statement.ts';
import type { StatementSigner } from '../../src/package/trust/statement/statement-signature.ts';
import { ANNA, type Fixture, fixture } from '../support/fixture.ts';
import { newSigner } from '../support/trust.ts';

const AT = '2026-01-02T03:04:05Z';
const DELETION = ['propose-deletion', 'delete'] as const;

let folder: string;
let clock: ManualClock;
let trust: Trust;
let world: Fixture;
let bare: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-rollback-'));
  clock = new ManualClock(Date.parse(AT));
  trust = await openTrust(folder, { clock });
  world = await fixture(clock, trust);
  bare = await world.register('apps');
});
afterEach(async () => {
  await world[Symbol.asyncDispose]();
  trust.ledger.close();
  await rm(folder, { recursive: true, force: true });
});

const git = (...words: string[]) =>
  execFileSync('git', ['-C', bare, '-c', 'user.name=eve', '-c', 'user.email=eve@example.com', ...words], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  }).trim();
const look = () => world.store.repository('apps').refresh();

/** Eve moves a tag, or removes it, and the server looks. */
async function move(tag: string, to: string | undefined): Promise<void> {
  const ref = `refs/tags/${tag}`;
  if (to === undefined) git('update-ref', '-d', ref);
  else git('update-ref', ref, to);
  await look();
}

async function publish(workspace: string): Promise<string> {
  clock.advance(1000);
  if (world.store.find('apps.web.main') === undefined) await world.draft(`apps/web/${workspace}`);
  else {
    git('update-ref', `refs/heads/drafts/web/${workspace}`, git('rev-parse', 'main'));
    await look();
  }
  await world.publish(`apps.web.${workspace}`);
  return git('rev-parse', 'refs/tags/web/v1');
}

async function remove(workspace: string): Promise<void> {
  for (const action of DELETION) await world.store.update(`apps.web.${workspace}`, { action }, ANNA);
}

/** What the tag web/v1 shows: the workspace if it counts, otherwise why not. */
function shown(revision = 1): string | undefined {
  const row = world.store.list({ package: 'web' }).find((one) => one.revision === revision);
  return row && (row.outOfBand === undefined ? row.key.workspace : `${row.outOfBand.reason}: ${row.outOfBand.message}`);
}

describe('a number that is given again', () => {
  test.each([
    ['after a deletion through Sluice', () => remove('a')],
    ['after a push removed the tag', () => move('web/v1', undefined)],
  ])('%s: the tag does not go back to the first publication, whose statement is as good as ever', async (_, end) => {
    const first = await publish('a');
    await end();
    const second = await publish('b');
    expect(shown()).toBe('b');
    await move('web/v1', first);
    expect(shown()).toBe(`RolledBack: a push set web/v1 back: the publication at ${second} is the last one published`);
    await move('web/v1', second);
    expect(shown()).toBe('b');
  });

  test('a deleted publication cannot be restored, however often its number was used', async () => {
    const first = await publish('a');
    await remove('a');
    const second = await publish('b');
    await remove('b');
    await move('web/v1', second);
    expect(shown()).toBe('RolledBack: it was deleted, and a push brought its tag back');
    await move('web/v1', first);
    expect(shown()).toBe(`RolledBack: a push set web/v1 back: the publication at ${second} is deleted since`);
  });

  test('a server that only reads detects it too', async () => {
    const onlooker = await openTrust(await mkdtemp(join(folder, 'onlooker-')), { clock });
    const other = await fixture(clock, onlooker);
    try {
      const { publicKey, fingerprint } = trust.signer();
      onlooker.ledger.addKey({ fingerprint, publicKey, comment: '', origin: 'added', addedAt: AT });
      const first = await publish('a');
      await other.register('apps', { repo: bare });
      const seen = async () => {
        clock.advance(100);
        await other.store.repository('apps').refresh();
        return other.store.list({ package: 'web' }).find((one) => one.revision === 1)?.outOfBand?.reason;
      };
      expect(await seen()).toBeUndefined();
      await remove('a');
      await seen();
      git('update-ref', '-d', 'refs/sluice/deleted/web%2Fv1');
      await move('web/v1', first);
      expect(await seen()).toBe('RolledBack');
      git('update-ref', '-d', 'refs/tags/web/v1');
      await look();
      const second = await publish('b');
      expect(await seen()).toBeUndefined();
      await move('web/v1', first);
      expect(await seen()).toBe('RolledBack');
      await move('web/v1', second);
      expect(await seen()).toBeUndefined();
    } finally {
      await other[Symbol.asyncDispose]();
      onlooker.ledger.close();
    }
  });

  test('an adopted publication cannot be restored after its deletion, until it is adopted again', async () => {
    const commit = await world.push(bare, {
      'web/Kptfile': 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: web\n',
    });
    await move('web/v1', commit);
    const repository = world.store.repository('apps');
    await repository.adopt(await repository.adoptable('web/*'), ANNA);
    expect(shown()).toBe('v1');
    await remove('v1');
    await move('web/v1', commit);
    expect(shown()).toMatch(/^(RolledBack|NotAnApproval): /);
    await repository.adopt(await repository.adoptable('web/*'), ANNA);
    expect(shown()).toBe('v1');
  });
});

describe('a statement in a tag', () => {
  /** A tag object with a statement like that of web/v1, with the number 9, on the commit of web/v1. */
  async function tagSignedBy(signer: StatementSigner, commit: string): Promise<string> {
    const signed = world.store.get('apps.web.a').tip.facts.statement;
    if (signed === undefined) throw new Error('no statement');
    const statement: PublicationStatement = { ...signed.statement, revision: 9, workspace: 'z' };
    const payload = payloadOf(statement);
    const head = `object ${commit}\ntype commit\ntag web/v9\ntagger eve <eve@example.com> 0 +0000`;
    const text = `${head}\n\nweb/v9\n\nSluice-Statement: ${payload}\nSluice-Signature: ${await signer.sign(payload)}\n`;
    return execFileSync('git', ['-C', bare, 'mktag'], { encoding: 'utf8', input: text }).trim();
  }

  test('that a revoked key signs later does not count on an old commit of the main branch', async () => {
    const stolen = trust.signer();
    const old = await publish('a');
    replaceKeyFile(statementKeyPath(folder), generateSshKey('another'));
    trust.ledger.revokeKey(stolen.fingerprint, AT);
    await look();
    expect(shown()).toBe('a');
    await move('web/v9', await tagSignedBy(stolen, old));
    expect(shown(9)).toMatch(/^RevokedKey: .* was revoked at/);
    expect(shown()).toBe('a');
  });

  test('that was read before its key was revoked stays valid, and a similar later one does not', async () => {
    const other = newSigner();
    trust.ledger.addKey({ ...other, comment: '', origin: 'added', addedAt: AT });
    clock.advance(100);
    const old = await publish('a');
    const good = await tagSignedBy(other, old);
    await move('web/v9', good);
    expect(shown(9)).toBe('z');
    trust.ledger.revokeKey(other.fingerprint, AT);
    await look();
    expect(shown(9)).toBe('z');
    await move('web/v9', undefined);
    await move('web/v9', good);
    expect(shown(9)).toBe('z');
  });

  test('on a commit that this server makes is verified like any other', async () => {
    const old = await publish('a');
    await move('web/v9', await tagSignedBy({ ...trust.signer(), sign: (text) => newSigner().sign(text) }, old));
    expect(shown(9)).toMatch(/^UntrustedKey: /);
  });
});

test('a revoked key makes the repository no other one, also where the server starts after that', async () => {
  const stolen = trust.signer();
  await publish('a');
  const { repository } = world.store.repository('apps').trust;
  replaceKeyFile(statementKeyPath(folder), generateSshKey('another'));
  trust.ledger.revokeKey(stolen.fingerprint, AT);
  const statement: RepositoryIdStatement = {
    ...{ statement: STATEMENT_VERSION, kind: 'repository', repository: newRepositoryId(), ...REPOSITORY_SCOPE },
    ...{ sequence: 1, previous: repository },
  };
  const payload = payloadOf(statement);
  const forged = formatStatement('Repository', { payload, signature: await stolen.sign(payload) });
  git('update-ref', 'refs/sluice/repository', git('commit-tree', '-m', forged, git('mktree')));
  await using again = await fixture(clock, trust);
  await again.register('apps', { repo: bare });
  expect(again.store.repository('apps').trust.repository).toBe(repository);
});

describe('the proof that a publication was deleted', () => {
  const at = () => ({ oid: git('rev-parse', 'refs/sluice/deleted/web%2Fv1'), path: 'web', version: 'v1' });
  const proves = (commit: string, isAdopted = false) =>
    provesDeletion(world.store.repository('apps'), { ...at(), isAdopted }, commit);

  test('is unsigned, as earlier versions left it, only where an operator adopted it', async () => {
    const commit = await publish('a');
    const unsigned = `delete\n\n${JSON.stringify({ version: 1, commit, verdicts: [], steps: [] })}\n`;
    git('update-ref', 'refs/sluice/deleted/web%2Fv1', git('commit-tree', '-m', unsigned, git('mktree')));
    await move('web/v1', undefined);
    const repository = world.store.repository('apps');
    const delivered = { package: 'web', revision: 1 };
    expect(await wasDeleted(repository, delivered, commit)).toBe(false);
    await repository.adopt(await repository.adoptable('web/*'), ANNA);
    expect(await wasDeleted(repository, delivered, commit)).toBe(true);
    expect(await wasDeleted(repository, delivered, `${commit.slice(0, -1)}x`)).toBe(false);
  });

  test('is not signed by a revoked key, unless the ledger knew of the deletion before', async () => {
    const stolen = trust.signer();
    const commit = await publish('a');
    await remove('a');
    expect(await proves(commit)).toBe(true);
    replaceKeyFile(statementKeyPath(folder), generateSshKey('another'));
    trust.ledger.revokeKey(stolen.fingerprint, AT);
    expect(await proves(commit)).toBe(true);
    // Another publication, whose deletion eve makes up from that record, with a number below that of the workspace.
    const tombstone = at().oid;
    const other = await publish('b');
    await look();
    const { signed } = parseRecord(git('log', '-1', '--format=%B', tombstone));
    if (signed === undefined) throw new Error('no statement');
    const { record } = signed.statement;
    const statement = { ...signed.statement, sequence: 1, record: { ...record, commit: other } };
    const payload = payloadOf(statement);
    const forged = formatRecord('x', { payload, signature: await stolen.sign(payload) });
    const made = git('commit-tree', '-m', forged, git('mktree', '--missing'));
    git('update-ref', 'refs/sluice/deleted/web%2Fv1', made);
    expect(await proves(other)).toBe(false);
    expect(await proves(other, true)).toBe(true);
  });
});
