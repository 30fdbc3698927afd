import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../../src/foundation/manual-clock.ts';
import { ZERO_OID } from '../../src/git/git-repository.ts';
import { emptyRecord } from '../../src/package/model/record.ts';
import type { ServerTrust } from '../../src/package/store/open-repository-trust.ts';
import type { PackageRepository } from '../../src/package/store/package-repository.ts';
import { judgePush } from '../../src/package/verify/judge-push.ts';
import { LookLedger } from '../../src/package/verify/look-ledger.ts';
import type { PushedRef } from '../../src/package/verify/pushed-ref.ts';
import { verifyRepository } from '../../src/package/verify/verify-repository.ts';
import { configMap, publish, publishNext, remove } from '../support/delivery.ts';
import { ANNA, type Fixture, fixture } from '../support/fixture.ts';
import { git as gitCli } from '../support/git/git-cli.ts';
import { newServerTrust } from '../support/trust.ts';

const MAIN = 'refs/heads/main';
const TOMBSTONE = 'refs/sluice/deleted/web%2Fv2';
const UNSIGNED = 'refs/sluice/records/79ccd24d-7c91-5a45-b667-aeecf5b10e25';

let trust: ServerTrust;
let world: Fixture;
let apps: PackageRepository;
let source: string;
beforeEach(async () => {
  trust = newServerTrust();
  world = await fixture(new ManualClock(), trust);
  await world.register('apps');
  apps = world.store.repository('apps');
  source = await publish(world, 'web', '1');
});
afterEach(() => world[Symbol.asyncDispose]());

const git = (...words: string[]) => gitCli(apps.git.path, words);
const oid = (ref: string) => git('rev-parse', ref);
const has = (ref: string) => git('for-each-ref', ref) !== '';

/** What the hook says to a push of these refs, to where they shall be; null removes one. It knows the keys and no ledger. */
async function hook(refs: Record<string, string | null>): Promise<string[]> {
  const ledger = LookLedger.ofKeys(trust.ledger.keys());
  const pushed = Object.entries(refs).map(
    ([ref, to]): PushedRef => ({ ref, old: has(ref) ? oid(ref) : ZERO_OID, new: to ?? ZERO_OID }),
  );
  const { git, layout } = apps;
  const refusals = await judgePush({ git, layout, refs: await git.listRefs(), ledger, pushed });
  return refusals.map(({ ref, message }) => `${ref}: ${message}`);
}

/** What a step of the server pushes, with the refs set back to where they were. */
async function pushOf(step: () => Promise<unknown>): Promise<Record<string, string | null>> {
  const read = () => new Map(git('for-each-ref', '--format=%(refname) %(objectname)').split('\n').map(pair));
  const before = read();
  await step();
  const after = read();
  const changed: Record<string, string | null> = {};
  for (const [ref, to] of after) if (before.get(ref) !== to) changed[ref] = to;
  for (const ref of before.keys()) if (!after.has(ref)) changed[ref] = null;
  for (const ref of Object.keys(changed)) {
    const old = before.get(ref);
    if (old === undefined) git('update-ref', '-d', ref);
    else git('update-ref', ref, old);
  }
  return changed;
}

function pair(line: string): [string, string] {
  const [ref = '', to = ''] = line.split(' ');
  return [ref, to];
}

describe('the hook on deletions', () => {
  test('lets in what the server deletes', async () => {
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
    const ledger = LookLedger.ofKeys(trust.ledger.keys());
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

  test('a publication that was deleted does not come back, and its number can be given again', async () => {
    await publishNext(world, source, 'w2', '2');
    const tag = oid('refs/tags/web/v2');
    await remove(world, 'apps.web.w2');
    const refused = 'refs/tags/web/v2: it was deleted; its number can only be given to a new publication';
    expect(await hook({ 'refs/tags/web/v2': tag })).toEqual([refused]);
    expect(await hook({ 'refs/tags/web/v2': tag, [TOMBSTONE]: null })).toEqual([refused]);
    await world.store.create('apps', { package: 'web', workspace: 'w3', source: { type: 'copy', source } }, ANNA);
    await world.store.change(
      'apps.web.w3',
      { files: new Map([['cm.yaml', Buffer.from(configMap('web', '3'))]]) },
      ANNA,
    );
    await world.store.transition('apps.web.w3', { action: 'propose' }, ANNA);
    const approval = await pushOf(() =>
      world.store.transition('apps.web.w3', { action: 'approve' }, { ...ANNA, actor: { name: 'bob' } }),
    );
    expect(Object.keys(approval)).toEqual(expect.arrayContaining([MAIN, 'refs/tags/web/v2', TOMBSTONE]));
    expect(await hook(approval)).toEqual([]);
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

describe('the hook on records', () => {
  test.each(['refs/sluice/records/db', 'refs/sluice/repository/x', 'refs/sluice/adopted/x'])(
    '%s, which would be in the way of others, is refused',
    async (ref) => {
      expect(await hook({ [ref]: oid(MAIN) })).toEqual([
        `${ref}: it stands in the way of what Sluice keeps below this name`,
      ]);
    },
  );

  test('records of earlier versions stay until they are adopted', async () => {
    const record = JSON.stringify({ ...emptyRecord(oid(MAIN)), labels: { team: 'shop' } });
    git('update-ref', UNSIGNED, git('commit-tree', `${MAIN}^{tree}`, '-m', `old\n\n${record}\n`));
    const refused = `${UNSIGNED}: records of earlier versions stay until "sluice repo adopt" takes them over`;
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
