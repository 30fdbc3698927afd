import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { approveTogether } from '../../../test/support/approve-together.ts';
import { configMap, publish, publishNext, remove } from '../../../test/support/delivery.ts';
import { ANNA, type Fixture, fixture } from '../../../test/support/fixture.ts';
import { GIT_ENVIRONMENT, git as gitCli, readRef, refsOf } from '../../../test/support/git/git-cli.ts';
import { newServerTrust, newSigner } from '../../../test/support/trust.ts';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { ZERO_OID } from '../../git/git-repository.ts';
import { probeRef, RECORD_BRANCHES } from '../model/identity/layout.ts';
import { emptyRecord } from '../model/record/record.ts';
import { openRepositoryTrust, type ServerTrust } from '../store/opening/open-repository-trust.ts';
import type { PackageRepository } from '../store/package-repository.ts';
import { formatRevokedKey, takeRevokedKeys } from '../trust/keys/revoked-key-line.ts';
import type { TrustedKey } from '../trust/ledger/trust-ledger.ts';
import type { StatementSigner } from '../trust/statement/statement-signature.ts';
import { checkPush } from './check-push.ts';
import { layoutOf } from './clone-refs.ts';
import type { PushedRef } from './pushed-ref.ts';
import { ReadOnlyLedger } from './read-only-ledger.ts';
import { verifyRepository } from './verify-repository.ts';

const MAIN = 'refs/heads/main';
const TOMBSTONE = 'refs/sluice/deleted/web%2Fv2';
const UNSIGNED = 'refs/sluice/records/79ccd24d-7c91-5a45-b667-aeecf5b10e25';

/** The key that the server has now. */
let signing: StatementSigner;
let trust: ServerTrust;
let world: Fixture;
let apps: PackageRepository;
let source: string;
beforeEach(async () => {
  signing = newSigner();
  trust = { ...newServerTrust(signing), signer: () => signing };
  world = await fixture(new ManualClock(), trust);
  await world.register('apps');
  apps = world.store.repository('apps');
  source = await publish(world, 'web', '1');
});
afterEach(() => world[Symbol.asyncDispose]());

const git = (...words: string[]) => gitCli(apps.git.path, words);
const oid = (ref: string) => readRef(apps.git.path, ref) ?? git('rev-parse', ref);
const has = (ref: string) => readRef(apps.git.path, ref) !== undefined;

/** The keys as "key show --allowed-signers" writes them to the file of the hook, revoked ones in their lines. */
function keysOfFile(): TrustedKey[] {
  const { ledger } = trust;
  return ledger.keys().flatMap((key) => {
    const { revocation } = key;
    return revocation === undefined
      ? [key]
      : takeRevokedKeys(formatRevokedKey(key, ledger.statementsUpTo(revocation.order))).revoked;
  });
}

/** Gives the repository another id that follows the present one. */
async function rewriteId({ git, layout }: PackageRepository, server: ServerTrust): Promise<void> {
  const identity = { name: 'eve', email: 'eve@example.com' };
  await openRepositoryTrust({
    ...{ git, layout, identity, server, remote: undefined, address: git.path, clock: new ManualClock(), newId: true },
    trustedKeys: () => new Map(server.ledger.keys().map((key) => [key.fingerprint, key])),
    refetch: async () => {},
  });
}

/** What the hook says to a push of these refs, to where they shall be; null removes one. It knows the keys and no ledger. */
async function hook(updates: Record<string, string | null>): Promise<string[]> {
  const ledger = ReadOnlyLedger.ofKeys(keysOfFile());
  const pushed = Object.entries(updates).map(
    ([ref, to]): PushedRef => ({ ref, old: has(ref) ? oid(ref) : ZERO_OID, new: to ?? ZERO_OID }),
  );
  const { git } = apps;
  const refs = await git.listRefs();
  const refusals = await checkPush({ git, layout: layoutOf(refs, 'main', ''), refs, ledger, pushed });
  return refusals.map(({ ref, message }) => `${ref}: ${message}`);
}

/** What a step of the server pushes, with the refs set back to where they were. */
async function pushOf(step: () => Promise<unknown>): Promise<Record<string, string | null>> {
  const before = refsOf(apps.git.path);
  await step();
  const after = refsOf(apps.git.path);
  const changed: Record<string, string | null> = {};
  for (const [ref, to] of after) if (before.get(ref) !== to) changed[ref] = to;
  for (const ref of before.keys()) if (!after.has(ref)) changed[ref] = null;
  const back = Object.keys(changed).map((ref) => {
    const old = before.get(ref);
    return old === undefined ? `delete ${ref}\n` : `update ${ref} ${old}\n`;
  });
  gitCli(apps.git.path, ['update-ref', '--stdin'], back.join(''));
  return changed;
}

describe('the hook on deletions', () => {
  test('accepts deletions by the server', async () => {
    await publishNext(world, source, 'w2', '2');
    const deletion = await pushOf(() => remove(world, 'apps.web.w2'));
    expect(Object.keys(deletion)).toEqual(expect.arrayContaining([TOMBSTONE, 'refs/tags/web/v2']));
    expect(await hook(deletion)).toEqual([]);
  });

  test('a publication is not deleted with the record of a draft in the place of the tombstone', async () => {
    await publishNext(world, source, 'w2', '2');
    await world.store.create('apps', { package: 'web', workspace: 'w3', source: { type: 'copy', source } }, ANNA);
    const record = oid('refs/sluice/records/web/w3');
    expect(await hook({ 'refs/tags/web/v2': null })).toEqual([
      expect.stringMatching(/^refs\/tags\/web\/v2: publications are deleted through Sluice/),
    ]);
    const refused = `${TOMBSTONE}: the record of the deletion does not count: its statement is not about a deletion of web/v2`;
    expect(await hook({ 'refs/tags/web/v2': null, [TOMBSTONE]: record })).toEqual([refused]);
    git('update-ref', TOMBSTONE, record);
    const { layout } = apps;
    const ledger = ReadOnlyLedger.ofKeys(trust.ledger.keys());
    const { verified } = await verifyRepository({ git: apps.git, layout, refs: await apps.git.listRefs(), ledger });
    expect(verified.find(({ ref }) => ref === TOMBSTONE)?.finding?.reason).toBe('OtherRevision');
  });

  test('nor with the tombstone of an earlier publication of the number, or under another name', async () => {
    await publishNext(world, source, 'w2', '2');
    await remove(world, 'apps.web.w2');
    const [earlier, first] = [oid(TOMBSTONE), git('log', '-1', '--format=%H', TOMBSTONE)];
    expect(first).toBe(earlier);
    await publishNext(world, source, 'w3', '3');
    expect(has(TOMBSTONE)).toBe(false);
    expect(await hook({ 'refs/tags/web/v2': null, [TOMBSTONE]: earlier })).toEqual([
      expect.stringMatching(
        /: the record of the deletion is about the publication at [0-9a-f]{40}, which refs\/tags\/web\/v2 does/,
      ),
    ]);
    expect(await hook({ 'refs/sluice/deleted/web/v2': earlier })).toEqual([
      'refs/sluice/deleted/web/v2: no record of a deletion has such a name',
    ]);
    expect(await hook({ [TOMBSTONE]: earlier })).toEqual([`${TOMBSTONE}: refs/tags/web/v2 is still there`]);
  });

  test('a deleted publication cannot be restored, and its number can be reused', async () => {
    await publishNext(world, source, 'w2', '2');
    const tag = oid('refs/tags/web/v2');
    await remove(world, 'apps.web.w2');
    const refused = 'refs/tags/web/v2: it was deleted; its number can only be reused by a new publication';
    expect(await hook({ 'refs/tags/web/v2': tag })).toEqual([refused]);
    expect(await hook({ 'refs/tags/web/v2': tag, [TOMBSTONE]: null })).toEqual([refused]);
    await world.store.create('apps', { package: 'web', workspace: 'w3', source: { type: 'copy', source } }, ANNA);
    await world.store.change(
      'apps.web.w3',
      { files: new Map([['cm.yaml', Buffer.from(configMap('web', '3'))]]) },
      ANNA,
    );
    await world.store.update('apps.web.w3', { action: 'propose' }, ANNA);
    const approval = await pushOf(() =>
      world.store.update('apps.web.w3', { action: 'approve' }, { ...ANNA, actor: { name: 'bob' } }),
    );
    expect(Object.keys(approval)).toEqual(expect.arrayContaining([MAIN, 'refs/tags/web/v2', TOMBSTONE]));
    expect(await hook(approval)).toEqual([]);
  });
});

describe('the hook on a repository whose records are branches', () => {
  const branches = (ref: string) =>
    ref.replace('refs/sluice/records/', RECORD_BRANCHES).replace('refs/sluice/deleted/', 'refs/heads/sluice-deleted/');

  test('deletions are let in, and the other place stays empty, also where the id was written there', async () => {
    await publishNext(world, source, 'w2', '2');
    await world.store.create('apps', { package: 'web', workspace: 'w3', source: { type: 'copy', source } }, ANNA);
    const deletion = await pushOf(() => remove(world, 'apps.web.w2'));
    const record = 'refs/sluice/records/web/w3';
    git('update-ref', branches(record), record);
    for (const ref of git('for-each-ref', '--format=%(refname)', 'refs/sluice/records/').split('\n'))
      git('update-ref', '-d', ref);
    const moved = Object.fromEntries(Object.entries(deletion).map(([ref, to]) => [branches(ref), to]));
    expect(Object.keys(moved)).toEqual(
      expect.arrayContaining(['refs/heads/sluice-deleted/web%2Fv2', 'refs/tags/web/v2']),
    );
    expect(await hook(moved)).toEqual([]);
    expect(await hook({ [record]: oid(branches(record)), 'refs/sluice/repository': null })).toEqual([
      `${record}: records of this repository are below ${RECORD_BRANCHES}`,
      'refs/sluice/repository: the id of the repository must stay',
    ]);
  });

  test('the probe for the place of records is let in', async () => {
    const probe = probeRef('refs/sluice/records/', randomUUID());
    expect(await hook({ [probe]: oid(MAIN) })).toEqual([]);
    expect(await hook({ [`${probe}x`]: oid(MAIN) })).toHaveLength(1);
  });
});

describe('the hook after a key was revoked', () => {
  /** A key in the place of the one that signed until now, which is revoked; returns that one. */
  function revoke(): StatementSigner {
    const old = signing;
    signing = newSigner();
    const { fingerprint, publicKey } = signing;
    trust.ledger.addKey({ fingerprint, publicKey, comment: 'next', origin: 'own', addedAt: '2026-01-01T00:00:00Z' });
    trust.ledger.revokeKey(old.fingerprint, '2026-01-02T00:00:00Z');
    return old;
  }

  async function findings(): Promise<string[]> {
    const { layout } = apps;
    const ledger = ReadOnlyLedger.ofKeys(keysOfFile());
    const { verified } = await verifyRepository({ git: apps.git, layout, refs: await apps.git.listRefs(), ledger });
    return verified.flatMap(({ ref, finding }) => (finding === undefined ? [] : `${ref}: ${finding.reason}`));
  }

  test('what it signed before stays in band offline, and publications with the next key are let in', async () => {
    await publishNext(world, source, 'w2', '2');
    await remove(world, 'apps.web.w2');
    const draft = { package: 'web', workspace: 'w3', source: { type: 'copy', source } } as const;
    await world.store.create('apps', draft, ANNA);
    expect(await findings()).toEqual([]);
    revoke();
    expect(await findings()).toEqual([]);
    expect(await hook(await pushOf(() => publish(world, 'fresh', '1')))).toEqual([]);
  });

  test('what it signs later does not count: publications, records, and another id', async () => {
    const old = revoke();
    const next = signing;
    signing = old;
    // The server of the thief has not learned of the revocation.
    const thief = { ...newServerTrust(old), verify: trust.verify };
    await using other = await fixture(new ManualClock(), thief);
    await other.register('apps', { repo: apps.git.path });
    const forged = await pushOf(() => publish(other, 'forged', '1'));
    signing = next;
    const output = await hook(forged);
    expect(output.map((line) => line.split(': ')[0])).toEqual(expect.arrayContaining([MAIN, 'refs/tags/forged/v1']));
    expect(output.join('\n')).toContain('which was revoked at 2026-01-02T00:00:00Z');
    const id = await pushOf(() => rewriteId(apps, thief));
    expect(await hook(id)).toEqual([
      expect.stringMatching(/^refs\/sluice\/repository: it is not a valid id: .*revoked/),
    ]);
  });
});

describe('the hook on the main branch', () => {
  test('it is not set back by a commit with the message and the tree of an earlier publication', async () => {
    await publishNext(world, source, 'w2', '2');
    const first = oid('refs/tags/web/v1^{commit}');
    const message = git('log', '-1', '--format=%B', first);
    const forged = git('commit-tree', `${first}^{tree}`, '-p', oid(MAIN), '-p', `${first}^2`, '-m', message);
    expect(git('show', `${forged}:web/cm.yaml`)).toContain('value: "1"');
    const refused = `${MAIN}: commit ${forged}: web/v1 carries a copy of a statement that was made for a commit on top of ${oid(`${first}^`)}`;
    expect(await hook({ [MAIN]: forged })).toEqual([refused]);
    expect(await hook({ [MAIN]: forged, 'refs/tags/web/v1': forged })).toEqual([
      refused,
      expect.stringMatching(/^refs\/tags\/web\/v1: /),
    ]);
  });
});

describe('the hook on a commit of several publications', () => {
  let push: Record<string, string | null>;
  let made: string;
  beforeEach(async () => {
    const names = ['a', 'b'].map((path) => `apps.${path}.w1`);
    for (const path of ['a', 'b'])
      await world.store.create('apps', { package: path, workspace: 'w1', source: { type: 'init' } }, ANNA);
    for (const name of names) await world.store.update(name, { action: 'propose' }, ANNA);
    const BERTA = { actor: { name: 'berta' }, face: 'controller' } as const;
    push = await pushOf(() => approveTogether(world.store, names, BERTA));
    made = push[MAIN] ?? '';
  });
  const TAG = 'refs/tags/a/v1';

  /** A commit like the one of the server, with one more file. */
  const withFile = (path: string) => {
    const index = join(apps.git.path, 'index-of-test');
    const words = ['--git-dir', apps.git.path];
    const inIndex = (...more: string[]) =>
      execFileSync('git', [...words, ...more], {
        env: { ...GIT_ENVIRONMENT, GIT_INDEX_FILE: index },
        encoding: 'utf8',
      });
    inIndex('read-tree', made);
    inIndex('update-index', '--add', '--cacheinfo', `100644,${oid(`${made}:a/Kptfile`)},${path}`);
    const tree = inIndex('write-tree').trim();
    return git('commit-tree', tree, '-p', `${made}^1`, '-p', `${made}^2`, '-p', `${made}^3`, '-m', 'more');
  };

  test('it is let in with the tags of all packages that it changes', async () => {
    expect(await hook(push)).toEqual([]);
    const { [TAG]: _tag, ...without } = push;
    expect(await hook(without)).toEqual([`${MAIN}: commit ${made}: it also changes a/Kptfile, which is no part of b`]);
    expect(await hook({ [MAIN]: made })).toEqual([
      `${MAIN}: commit ${made}: it carries no signed statement; publish through Sluice`,
    ]);
  });

  test('the tag of one package does not stand for another one', async () => {
    expect(await hook({ ...push, [TAG]: push['refs/tags/b/v1'] ?? null })).toEqual([
      `${MAIN}: commit ${made}: ${TAG} has the statement of b/v1`,
      expect.stringMatching(/^refs\/tags\/a\/v1: it is no publication: a\/v1 carries a statement for b\/v1/),
    ]);
  });

  test('what else it changes, or another commit with its statements, is refused', async () => {
    const other = withFile('c/Kptfile');
    const text = git('cat-file', '-p', push[TAG] ?? '');
    git('tag', '--force', '--annotate', '--cleanup=verbatim', '-m', text, 'moved', other);
    const tag = oid('refs/tags/moved');
    git('tag', '-d', 'moved');
    expect(await hook({ ...push, [MAIN]: other, [TAG]: tag })).toEqual(
      expect.arrayContaining([`${MAIN}: commit ${other}: it carries no signed statement; publish through Sluice`]),
    );
    // On top of the one of the server.
    const later = git('commit-tree', `${other}^{tree}`, '-p', made, '-m', 'more');
    expect(await hook({ ...push, [MAIN]: later })).toEqual([
      `${MAIN}: commit ${later}: it carries no signed statement; publish through Sluice`,
    ]);
  });

  test('what a key signs after it was revoked does not count', async () => {
    const before = signing;
    signing = newSigner();
    const { fingerprint, publicKey } = signing;
    const at = '2026-01-02T00:00:00Z';
    trust.ledger.addKey({ fingerprint, publicKey, comment: 'next', origin: 'own', addedAt: at });
    trust.ledger.revokeKey(before.fingerprint, at);
    expect(await hook(push)).toContainEqual(expect.stringMatching(/^refs\/heads\/main: commit .*revoked/));
  });
});

describe('the hook on records', () => {
  test.each(['refs/sluice/records/db', 'refs/sluice/repository/x', 'refs/sluice/adopted/x'])(
    '%s, which would be in the way of others, is refused',
    async (ref) => {
      expect(await hook({ [ref]: oid(MAIN) })).toEqual([
        `${ref}: it conflicts with the refs that Sluice keeps below this name`,
      ]);
    },
  );

  test('records of earlier versions stay until they are adopted', async () => {
    const record = JSON.stringify({ ...emptyRecord(oid(MAIN)), labels: { team: 'shop' } });
    git('update-ref', UNSIGNED, git('commit-tree', `${MAIN}^{tree}`, '-m', `old\n\n${record}\n`));
    const refused = `${UNSIGNED}: records of earlier versions stay until "sluice repo adopt" converts them`;
    expect(await hook({ [UNSIGNED]: null })).toEqual([refused]);
    expect(await hook({ [UNSIGNED]: null, 'refs/sluice/records/x': oid(MAIN) })).toContain(refused);
    expect(await hook({ [UNSIGNED]: null, 'refs/sluice/records/db/x': oid(MAIN) })).toContain(refused);
  });

  test('their adoption is let in, also where nothing of them outlives the publication', async () => {
    const { uid } = world.store.get(source);
    const ref = `refs/sluice/records/${uid}`;
    git(
      'update-ref',
      ref,
      git('commit-tree', `${MAIN}^{tree}`, '-m', `old\n\n${JSON.stringify(emptyRecord(oid(MAIN)))}\n`),
    );
    const adoption = await pushOf(async () => apps.adopt(await apps.adoptable(), ANNA));
    expect(adoption).toMatchObject({ [ref]: null });
    expect(await hook(adoption)).toEqual([]);
  });
});
