import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ledgerPath, openTrust, statementKeyPath, type Trust } from '../../src/app/trust/open-trust.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { generateSshKey } from '../../src/git/signing/generate-ssh-key.ts';
import { replaceKeyFile } from '../../src/package/trust/keys/statement-key-file.ts';
import { SqliteTrustLedger } from '../../src/package/trust/sqlite/sqlite-trust-ledger.ts';
import { payloadOf } from '../../src/package/trust/statement/statement.ts';
import { statementSigner } from '../../src/package/trust/statement/statement-signer.ts';
import { ANNA, type Fixture, fixture } from '../support/fixture.ts';

const AT = '2026-01-02T03:04:05Z';
const BERTA = { ...ANNA, actor: { name: 'berta' } };

let folder: string;
/** Stands still: whatever a ledger keeps for some milliseconds, it keeps for the whole test. */
let clock: ManualClock;
let trust: Trust;
let world: Fixture;
/** The ledger as commands beside the running server have it open. */
let beside: SqliteTrustLedger;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-keys-'));
  clock = new ManualClock(Date.parse(AT));
  trust = await openTrust(folder, { clock });
  world = await fixture(clock, trust);
  beside = SqliteTrustLedger.open({ path: ledgerPath(folder), clock });
  await world.register('apps');
});
afterEach(async () => {
  await world[Symbol.asyncDispose]();
  beside.close();
  trust.ledger.close();
  await rm(folder, { recursive: true, force: true });
});

/** The key that signed a publication. */
async function signerOf(name: string): Promise<string | undefined> {
  const signed = world.store.get(name).tip.facts.statement;
  return signed && trust.verify(payloadOf(signed.statement), signed.signature);
}

test('the approval right after "key rotate" and "key revoke" is not signed with the revoked key', async () => {
  const stolen = trust.signer().fingerprint;
  const { name } = await world.draft('apps/web/v1');
  await world.store.update(name, { action: 'propose' }, ANNA);
  replaceKeyFile(statementKeyPath(folder), generateSshKey('another'));
  beside.revokeKey(stolen, AT);
  await world.store.update(name, { action: 'approve' }, BERTA);
  expect(world.store.get(name).outOfBand).toBeUndefined();
  expect(await signerOf(name)).toBe(trust.signer().fingerprint);
  expect(await signerOf(name)).not.toBe(stolen);
});

test('a revoked key approves nothing once "key revoke" returned: what the server signs with is refused', async () => {
  const { name } = await world.draft('apps/web/v1');
  await world.store.update(name, { action: 'propose' }, ANNA);
  beside.revokeKey(trust.signer().fingerprint, AT);
  await expect(world.store.update(name, { action: 'approve' }, BERTA)).rejects.toThrow(/was revoked at/);
  expect(world.store.get(name).lifecycle).toBe('Proposed');
});

test('a record after the revocation does not count at the first sync, and no decision uses it', async () => {
  const other = statementSigner(generateSshKey('other'));
  beside.addKey({ ...other, comment: 'other', origin: 'added', addedAt: AT });
  clock.advance(100);
  await world.store.repository('apps').refresh();
  const { name } = await world.draft('apps/web/v1');
  // Another server takes the next step with that key.
  const { git, trust: repositoryTrust } = world.store.repository('apps');
  const ref = 'refs/sluice/records/web/v1';
  const record = world.store.get(name);
  const old = record.recordOid ?? '';
  expect(record.record).toBeDefined();
  const { message, tree } = await git.readCommit(old);
  const [, payload = ''] = /\n\n(\{.*\})\n/.exec(message) ?? [];
  const statement = JSON.parse(payload);
  const next = JSON.stringify({ ...statement, sequence: statement.sequence + 1, previous: null });
  const signature = await other.sign(next);
  const text = message.replace(payload, next).replace(/Sluice-Signature: .*/, `Sluice-Signature: ${signature}`);
  const by = { name: 'x', email: 'x@example.com', time: clock.now() };
  const forged = await git.writeCommit({ tree, parents: [old], author: by, committer: by, message: text });
  beside.revokeKey(other.fingerprint, AT);
  await git.transaction([{ type: 'update', ref, old, new: forged }]);
  await world.store.repository('apps').refresh();
  expect(world.store.get(name).recordDistrust?.reason).toBe('RevokedKey');
  expect(repositoryTrust.mark({ package: 'web', workspace: 'v1' })?.sequence).toBe(statement.sequence);
});
