import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { payloadOf } from '../../src/package/trust/statement/statement.ts';
import type { StatementSigner } from '../../src/package/trust/statement/statement-signature.ts';
import { statementSigner } from '../../src/package/trust/statement/statement-signer.ts';
import { newSigner } from '../support/trust.ts';
import { kptfile, TrustWorld } from './support/trust-world.ts';

let world: TrustWorld;
/** A publication that was made in order. */
let web: string;
beforeAll(async () => {
  world = await TrustWorld.start();
  await world.register('apps');
  web = await world.publish('apps', 'web');
  world.git('apps', 'fetch', '--quiet', 'origin');
});
afterAll(() => world.end());

/** The key with which the server signs, as an attacker has it who read the data folder. */
function stolenKey(): StatementSigner {
  return statementSigner(readFileSync(join(world.data, 'keys', 'statement-key'), 'utf8'));
}

/** Expects that a revision is out of band, for this reason, in all that users read. */
async function expectOutOfBand(name: string, reason: string, message: string): Promise<void> {
  const flag = await world.outOfBand(name);
  expect(flag).toContain(reason);
  expect(flag).toContain(message);
  expect(await world.why(name)).toContain(message);
}

/** A publication that eve signs: web as it is, as another package on top of the main branch, pushed with its tag. */
async function publishAs(
  name: string,
  signer: StatementSigner,
  change: (statement: Record<string, unknown>) => object = (statement) => statement,
): Promise<string> {
  world.git('apps', 'fetch', '--quiet', 'origin', '+refs/heads/main:refs/remotes/origin/main');
  const message = world.message('apps', world.git('apps', 'ls-remote', 'origin', 'refs/tags/web/v1').slice(0, 40));
  const real = JSON.parse(/^Sluice-Statement: (.*)$/m.exec(message)?.[1] ?? '');
  const edited = world.edit('apps', 'origin/main', { [`${name}/Kptfile`]: kptfile(name) });
  const tree = world.git('apps', 'rev-parse', `${edited}:${name}`);
  const statement = change({
    ...{ ...real, package: name, tree, draft: edited },
    onto: world.git('apps', 'rev-parse', 'origin/main'),
  });
  const payload = payloadOf(statement as typeof real);
  const signature = await signer.sign(payload);
  const text = `Approving package revision ${name}/1\n\nSluice-Action: approve\nSluice-Statement: ${payload}\nSluice-Signature: ${signature}`;
  const commit = world.commit('apps', text, world.git('apps', 'rev-parse', `${edited}^{tree}`), 'origin/main', edited);
  await world.push('apps', `${commit}:refs/heads/main`, `${commit}:refs/tags/${name}/v1`);
  return `apps.${name}.${real.workspace}`;
}

describe('what eve pushes is no publication', () => {
  test('a manual tag', async () => {
    const commit = world.edit('apps', 'origin/main', { 'hand/Kptfile': kptfile('hand') });
    await world.push('apps', `${commit}:refs/heads/main`, `${commit}:refs/tags/hand/v1`);
    await expectOutOfBand('apps.hand.v1', 'NotAnApproval', 'hand/v1 points to a commit without a signed approval');
    await world.said(/hand\/v1 points to a commit without a signed approval/);
  });

  test('a manual tag with the statement of another one', async () => {
    world.fetch('apps');
    const message = world.message('apps', 'refs/all/tags/web/v1');
    const commit = world.edit('apps', 'refs/all/heads/main', { 'web/Kptfile': kptfile('web') }, message);
    await world.push('apps', `${commit}:refs/heads/main`, `${commit}:refs/tags/web/v9`);
    await expectOutOfBand('apps.web.v9', 'OtherRevision', 'web/v9 carries a statement for web/v1');
  });

  test('a tag that she moves', async () => {
    world.fetch('apps');
    const good = world.git('apps', 'rev-parse', 'refs/all/tags/web/v1');
    const message = world.message('apps', good);
    const commit = world.edit('apps', good, { 'web/Kptfile': kptfile('web') }, message);
    await world.push('apps', `${commit}:refs/tags/web/v1`);
    await expectOutOfBand(web, 'ContentChanged', 'the content of web/v1 is not the content that was approved');
    await world.said(/the tag of web\/v1 was moved/);
    await world.push('apps', `${good}:refs/tags/web/v1`);
    expect(await world.outOfBand(web)).toBeUndefined();
  });

  test('one that was deleted through Sluice, and that she restores', async () => {
    const name = await world.publish('apps', 'gone');
    world.fetch('apps');
    const good = world.git('apps', 'rev-parse', 'refs/all/tags/gone/v1');
    await world.ok('rpkg', 'propose-delete', name);
    await world.ok('rpkg', 'delete', name);
    // With and without what tells of the deletion in Git.
    for (const refspecs of [[`${good}:refs/tags/gone/v1`], [':refs/sluice/deleted/gone%2Fv1']]) {
      await world.push('apps', ...refspecs);
      await expectOutOfBand(name, 'RolledBack', 'it was deleted, and a push brought its tag back');
    }
  });

  test('signed with a key of hers', async () => {
    const name = await publishAs('foreign', newSigner());
    await expectOutOfBand(name, 'UntrustedKey', 'which this repository does not trust');
    await world.said(/the publication of foreign\/v1 does not count/);
  });

  test('with names that she puts into a good statement', async () => {
    const name = await publishAs('names', { ...stolenKey(), sign: async () => newSigner().sign('another text') });
    await expectOutOfBand(name, 'BadSignature', 'the signature of its statement is not valid');
  });

  test('with closed gates, also where the key is stolen', async () => {
    const name = await publishAs('closed', stolenKey(), (statement) => ({
      ...statement,
      record: {
        ...(statement.record as object),
        gates: [{ type: 'tested', requiredBy: ['Kptfile'], state: 'Missing' }],
      },
    }));
    await expectOutOfBand(name, 'GateUnmet', 'the statement of closed/v1 lists closed gates: tested');
  });

  test('off the main branch, also where the key is stolen', async () => {
    world.fetch('apps');
    const head = world.git('apps', 'rev-parse', 'refs/all/heads/main');
    const name = await publishAs('aside', stolenKey());
    const tag = world.git('apps', 'ls-remote', 'origin', 'refs/tags/aside/v1').slice(0, 40);
    await world.push('apps', `${head}:refs/heads/main`, ':refs/tags/aside/v1');
    const copy = world.commit('apps', world.message('apps', tag), `${tag}^{tree}`, `${tag}^1`, `${tag}^2`);
    await world.push('apps', `${copy}:refs/tags/aside/v1`);
    await expectOutOfBand(name, 'NotOnMain', 'its commit was not on the main branch when it was first seen');
  });

  test('by a key that was stolen and is revoked, while what it signed before stays valid', async () => {
    const stolen = stolenKey();
    await world.ok('key', 'rotate', '--data', world.data);
    await world.ok('key', 'revoke', stolen.fingerprint, '--data', world.data);
    const name = await publishAs('late', stolen);
    await expectOutOfBand(name, 'RevokedKey', 'which was revoked at');
    expect(await world.outOfBand(web)).toBeUndefined();
  });
});

describe('what a repository is', () => {
  const repository = () => world.ok('repo', 'get', 'apps', '-o', 'yaml');

  test('its id does not change by any push of eve', async () => {
    world.fetch('apps');
    const id = world.git('apps', 'rev-parse', 'refs/all/sluice/repository');
    const forged = world.commit('apps', 'Repository x\n\n{}\n\nSluice-Signature: x', `${id}^{tree}`);
    await world.push('apps', `${forged}:refs/sluice/repository`);
    expect(await world.outOfBand(web)).toBeUndefined();
    await world.until(async () => (await repository()).includes('refs/sluice/repository was replaced by a push'));
    await world.push('apps', ':refs/sluice/repository');
    expect(await world.outOfBand(web)).toBeUndefined();
    await world.until(async () => (await repository()).includes('refs/sluice/repository is gone'));
    await world.push('apps', `${id}:refs/sluice/repository`);
  });

  test('a list of adoptions that she pushes adopts nothing', async () => {
    const commit = world.edit('apps', 'origin/main', { 'mine/Kptfile': kptfile('mine') });
    await world.push('apps', `${commit}:refs/tags/mine/v1`);
    const list = world.edit('apps', 'origin/main', { adopted: `${commit} refs/tags/mine/v1\n` }, 'adopted');
    await world.push('apps', `${list}:refs/sluice/adopted`);
    await expectOutOfBand('apps.mine.v1', 'NotAnApproval', 'points to a commit without a signed approval');
    await world.until(async () => (await repository()).includes('adoptions do not count: refs/sluice/adopted'));
  });

  test('a copy of it is refused until it has an id of its own, and then nothing in it counts', async () => {
    world.git('apps', 'clone', '--quiet', '--mirror', world.path('apps'), world.path('copy'));
    const refused = await world.refused('repo', 'reg', world.path('copy'), '--name', 'copy');
    expect(refused).toContain('copy is registered, but cannot be used yet: this is a copy of the repository at');
    expect(await world.ok('repo', 'get', 'copy', '-o', 'yaml')).toContain(
      '"sluice repo adopt <name> --new-id" makes it a separate repository',
    );
    await world.ok('repo', 'adopt', 'copy', '--new-id', '--yes', '--data', world.data);
    await world.ok('repo', 'sync', 'copy');
    await world.until(async () => (await world.run('rpkg', 'get', 'copy.web.v1')).code === 0);
    await expectOutOfBand('copy.web.v1', 'OtherRepository', 'web/v1 carries a statement for another repository');
    expect(await world.outOfBand(web)).toBeUndefined();
  });

  test('a main branch that is rewritten is one finding for the repository, and what was published stays', async () => {
    world.fetch('apps');
    const root = world.git('apps', 'rev-list', '--max-parents=0', 'refs/all/heads/main');
    const commit = world.edit('apps', root, { 'new/Kptfile': kptfile('new') });
    await world.push('apps', `${commit}:refs/heads/main`);
    await world.said(/refs\/heads\/main .*was rewritten/);
    expect(await world.outOfBand(web)).toBeUndefined();
    // An operator accepts it.
    const adopt = ['repo', 'adopt', 'apps', '--only', 'none', '--data', world.data];
    expect(await world.ok(...adopt)).toContain('main branch: ');
    expect(await world.ok(...adopt, '--yes')).toContain('adopted: 0 tags, 0 records, the main branch');
    expect(await world.ok(...adopt)).toBe('nothing to adopt in apps\n');
    const after = await world.publish('apps', 'after');
    expect(await world.outOfBand(after)).toBeUndefined();
  });
});
