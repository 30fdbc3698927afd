import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newSigner } from '../support/trust.ts';
import { kptfile, TrustWorld } from './support/trust-world.ts';

let world: TrustWorld;
beforeAll(async () => {
  world = await TrustWorld.start();
  await world.register('apps');
});
afterAll(() => world.end());

const RECORD = 'refs/sluice/records';
const EMPTY_TREE = '4b825dc642cb6eb9a060e54bf8d69288fbee4904';

function recordCommit(message: string): string {
  world.git('apps', 'hash-object', '-t', 'tree', '-w', '/dev/null');
  return world.commit('apps', message, EMPTY_TREE);
}

/** Expects that the gate is closed: no controller proposes it, and `why` says which gate and why. */
async function expectClosed(name: string, reason: string): Promise<void> {
  expect(await world.refused('rpkg', 'propose', name)).toContain('tested');
  const why = await world.why(name);
  expect(why).toContain('Gates: 0 of 1 open');
  expect(why).toContain(reason);
  expect((await world.revision(name)).spec.lifecycle).toBe('Draft');
}

/** A draft whose Kptfile says that it is tested, as eve pushed it, and what an unsigned record of that would say. */
async function pushedDraft(name: string): Promise<{ name: string; record: string }> {
  const pushed = world.edit('apps', 'origin/main', { [`${name}/Kptfile`]: kptfile(name, 'True') });
  await world.push('apps', `${pushed}:refs/heads/drafts/${name}/v1`);
  // The server renders it and writes a record of its own, which eve replaces.
  await world.until(() => world.has('apps', `${RECORD}/${name}/v1`));
  world.fetch('apps');
  const commit = world.git('apps', 'rev-parse', `refs/all/heads/drafts/${name}/v1`);
  const at = '2026-01-01T00:00:00Z';
  const verdict = { type: 'tested', status: 'True', inputs: { content: '*' }, by: 'ci', face: 'cli', at, since: at };
  return { name: `apps.${name}.v1`, record: JSON.stringify({ version: 1, commit, verdicts: [verdict], steps: [] }) };
}

describe('a record that eve pushes opens no gate', () => {
  test('without a signature', async () => {
    const { name, record } = await pushedDraft('unsigned');
    await world.push('apps', `${recordCommit(`x\n\n${record}`)}:${RECORD}/unsigned/v1`);
    await world.said(/the record of unsigned\/v1 does not count \(Unsigned\): it carries no signed statement/);
    await expectClosed(name, 'policy does not permit a plain push to set tested');
  });

  test('signed with a key of hers', async () => {
    const { name, record } = await pushedDraft('foreign');
    world.fetch('apps');
    const id = JSON.parse(world.message('apps', 'refs/all/sluice/repository').split('\n')[2] ?? '').repository;
    const statement = {
      ...{ kind: 'record', package: 'foreign', previous: null, record: JSON.parse(record), repository: id },
      ...{ sequence: 1, statement: 'sluice.dev/v1', workspace: 'v1' },
    };
    const payload = sorted(statement);
    const signature = await newSigner().sign(payload);
    const commit = recordCommit(`x\n\n${payload}\n\nSluice-Signature: ${signature}`);
    await world.push('apps', `${commit}:${RECORD}/foreign/v1`);
    await world.said(
      /the record of foreign\/v1 does not count \(UntrustedKey\): .* which this repository does not trust/,
    );
    await expectClosed(name, 'policy does not permit a plain push to set tested');
  });

  test('of another revision', async () => {
    const other = await world.gated('apps', 'tested');
    await world.ok('rpkg', 'condition', 'set', other, 'tested', 'True');
    world.fetch('apps');
    // The same content, so that the verdict would fit.
    await world.push('apps', 'refs/all/heads/drafts/tested/v1:refs/heads/drafts/tested/copied');
    await world.push('apps', `refs/all/sluice/records/tested/v1:${RECORD}/tested/copied`);
    await expectClosed('apps.tested.copied', 'its statement was made for tested/v1');
  });

  test('of another repository with the same server', async () => {
    await world.register('other');
    const name = await world.gated('other', 'moved');
    await world.ok('rpkg', 'condition', 'set', name, 'tested', 'True');
    world.git('apps', 'fetch', '--quiet', world.path('other'), '+refs/*:refs/other/*');
    await world.push('apps', 'refs/other/heads/drafts/moved/v1:refs/heads/drafts/moved/v1');
    await world.push('apps', `refs/other/sluice/records/moved/v1:${RECORD}/moved/v1`);
    await expectClosed('apps.moved.v1', 'its statement was made for another repository');
  });

  test('of before a condition was withdrawn', async () => {
    const name = await world.gated('apps', 'back');
    await world.ok('rpkg', 'condition', 'set', name, 'tested', 'True');
    world.fetch('apps');
    await world.ok('rpkg', 'condition', 'set', name, 'tested', 'False');
    await world.push('apps', `refs/all/sluice/records/back/v1:${RECORD}/back/v1`);
    await world.push('apps', 'refs/all/heads/drafts/back/v1:refs/heads/drafts/back/v1');
    await expectClosed(name, 'its record was replaced by an older or another one');
  });

  test('nor does removing the record restore an earlier state', async () => {
    const name = await world.gated('apps', 'removed');
    await world.ok('rpkg', 'condition', 'set', name, 'tested', 'True');
    world.fetch('apps');
    await world.ok('rpkg', 'condition', 'set', name, 'tested', 'False');
    await world.push('apps', 'refs/all/heads/drafts/removed/v1:refs/heads/drafts/removed/v1', `:${RECORD}/removed/v1`);
    await expectClosed(name, 'its record was removed');
    // A person with the right to give it opens the gate again.
    await world.ok('rpkg', 'condition', 'set', name, 'tested', 'True');
    await world.ok('rpkg', 'propose', name);
  });
});

describe('who made a draft is no word of its commits', () => {
  test('trailers of Sluice in a pushed commit do not make its pusher unknown', async () => {
    const trailers =
      'Creating new empty revision\n\nSluice-Action: create\nSluice-Actor: controller:revision\nSluice-Face: controller';
    const tip = world.edit('apps', 'origin/main', { 'trailers/Kptfile': kptfile('trailers', 'True') }, trailers);
    await world.push('apps', `${tip}:refs/heads/drafts/trailers/v1`);
    await expectClosed('apps.trailers.v1', 'Changed by: an unknown user (git push)');
  });
});

describe('after the ledger was lost', () => {
  test('verdicts on drafts wait to be affirmed, and publications stay valid', async () => {
    const draft = await world.gated('apps', 'lost');
    await world.ok('rpkg', 'condition', 'set', draft, 'tested', 'True');
    const published = await world.publish('apps', 'kept');
    expect(await world.why(draft)).toContain('Gates: 1 of 1 open');
    await world.restart(() => {
      for (const end of ['', '-wal', '-shm']) rmSync(join(world.data, `trust.sqlite${end}`), { force: true });
    });
    await world.ok('repo', 'sync', 'apps');
    expect(await world.outOfBand(published)).toBeUndefined();
    await expectClosed(draft, 'no record proves for which content; set the condition again');
    await world.ok('rpkg', 'condition', 'set', draft, 'tested', 'True');
    await world.ok('rpkg', 'propose', draft);
  });
});

/** JSON with sorted keys, as statements are signed. */
function sorted(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
