import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ManualClock, settle } from '../../src/foundation/time/manual-clock.ts';
import { ALLOWED_SIGNERS_ANNOTATION, peopleOf } from '../../src/package/model/policy/people.ts';
import type { PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import { configMapKind } from '../../src/resource/kinds/core/config-map.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { ANNA, type Fixture, fixture } from '../support/fixture.ts';

const TYPE = 'SecurityReview';
const kptfile = (status?: string) =>
  `apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\n${status === undefined ? '' : `status:\n  conditions:\n    - {type: ${TYPE}, status: "${status}"}\n`}`;

let clock: ManualClock;
let world: Fixture;
let bare: string;
beforeEach(async () => {
  clock = new ManualClock(Date.parse('2026-01-02T03:04:05Z'));
  world = await fixture(clock);
  bare = await world.register('apps');
  for (const name of ['anna', 'mallory'])
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', name, '-f', join(world.folder, name)]);
  await list(`anna ${key('anna')}\n`);
});
afterEach(() => world[Symbol.asyncDispose]());

const key = (name: string) =>
  execFileSync('cut', ['-d', ' ', '-f', '1,2', join(world.folder, `${name}.pub`)], { encoding: 'utf8' }).trim();

async function list(text: string): Promise<void> {
  const { client } = world;
  const known = await client.find(configMapKind, { name: 'people' });
  if (known !== undefined) await client.update(configMapKind, { ...known, data: { allowed_signers: text } });
  else {
    await client.create(configMapKind, { metadata: { name: 'people' }, data: { allowed_signers: text } });
    await client.patch(
      repositoryKind,
      { name: 'apps' },
      {
        metadata: { annotations: { [ALLOWED_SIGNERS_ANNOTATION]: 'people' } },
      },
    );
  }
  await settle();
}

async function policy(spec: Record<string, unknown>): Promise<void> {
  await world.client.create(packagePolicyKind, { metadata: { name: 'production' }, spec });
  await settle();
}

/** Runs real git on the bare repository, with the time of the test. */
function git(words: readonly string[], environment: Record<string, string> = {}, input = ''): string {
  const date = `${Math.floor(clock.now() / 1000)} +0000`;
  const person = { GIT_AUTHOR_NAME: 'x', GIT_AUTHOR_EMAIL: 'x@y', GIT_COMMITTER_NAME: 'x', GIT_COMMITTER_EMAIL: 'x@y' };
  const env = { ...process.env, ...person, GIT_AUTHOR_DATE: date, GIT_COMMITTER_DATE: date, ...environment };
  return execFileSync('git', ['-C', bare, ...words], { encoding: 'utf8', env, input }).trim();
}

/** Commits files on top of `from`, signed with real git by the key of `who`, and moves the branch there. */
async function push(
  branch: string,
  files: Record<string, string>,
  who: string | undefined,
  options: { from?: string; environment?: Record<string, string> } = {},
): Promise<string> {
  const known = (() => {
    try {
      return git(['rev-parse', '--verify', '--quiet', `refs/heads/${branch}`]);
    } catch {
      return undefined;
    }
  })();
  const from = options.from ?? known ?? 'main';
  const index = { GIT_INDEX_FILE: join(world.folder, 'index') };
  git(['read-tree', from], index);
  for (const [path, text] of Object.entries(files)) {
    const blob = git(['hash-object', '-w', '--stdin'], {}, text);
    git(['update-index', '--add', '--cacheinfo', `100644,${blob},${path}`], index);
  }
  const tree = git(['write-tree'], index);
  const signing = who === undefined ? [] : ['-c', 'gpg.format=ssh', '-c', `user.signingkey=${join(world.folder, who)}`];
  const sign = who === undefined ? [] : ['-S'];
  const commit = git([...signing, 'commit-tree', ...sign, '-p', from, '-m', 'work', tree], options.environment);
  await move(branch, commit);
  return commit;
}

async function move(branch: string, commit: string): Promise<void> {
  git(['update-ref', `refs/heads/${branch}`, commit]);
  await world.store.repository('apps').refresh();
}

const draft = 'drafts/app/w1';
const contributors = async (name = 'apps.app.w1') =>
  (await world.store.evaluate(name)).record.contributors?.map((one) => one.name) ?? [];
const givenBy = async (name = 'apps.app.w1') => {
  const { record } = await world.store.evaluate(name);
  return record.verdicts.find(({ type }) => type === TYPE)?.by;
};
const as = (name: string) => ({ ...ANNA, actor: { name } });

test('a commit that is signed with a listed key is its author: one other person approves, and the author does not', async () => {
  await policy({ approval: { forbidSelfApproval: true } });
  await push(draft, { 'app/Kptfile': kptfile() }, 'anna');
  expect(await contributors()).toEqual(['anna']);
  const name = 'apps.app.w1';
  await world.store.update(name, { action: 'propose' }, as('carla'));
  await expect(world.store.update(name, { action: 'approve' }, as('anna'))).rejects.toThrow('anna changed the content');
  const after = (await world.store.update(name, { action: 'approve' }, as('berta'))) as PackageRevision;
  expect(after.lifecycle).toBe('Published');
});

test.each([
  ['no signature', undefined],
  ['a key that is not listed', 'mallory'],
])('%s identifies no user, whatever the author line says', async (_what, who) => {
  const environment = { GIT_AUTHOR_NAME: 'anna', GIT_COMMITTER_NAME: 'anna' };
  await push(draft, { 'app/Kptfile': kptfile() }, who, { environment });
  expect(await contributors()).toEqual(['push']);
});

test('a signature that was copied from another commit identifies no user', async () => {
  const signed = await push(draft, { 'app/Kptfile': kptfile() }, 'anna');
  const forged = git(['cat-file', 'commit', signed]).replace(/\nwork$/, '\nevil');
  await move('drafts/app/w2', git(['hash-object', '-t', 'commit', '-w', '--stdin'], {}, `${forged}\n`));
  expect(await contributors('apps.app.w2')).toEqual(['push']);
});

test('a condition in a signed commit is issued by its author; an unsigned one on top is not, and its pusher is a contributor too', async () => {
  await policy({
    requiredGates: [{ conditionType: TYPE }],
    givers: [{ conditionType: TYPE, actors: ['anna'] }],
  });
  const { name } = await world.draft('apps/app/w1', { Kptfile: kptfile() });
  clock.advance(60_000);
  await push(draft, { 'app/Kptfile': kptfile('True') }, 'anna');
  expect(await givenBy()).toBe('anna');
  expect((await world.store.evaluate(name)).gates[0]?.state).toBe('Open');
  await push(draft, { 'app/evil.yaml': 'a: 1\n' }, undefined);
  const evaluation = await world.store.evaluate(name);
  expect(evaluation.gates[0]?.state).toBe('Stale');
  expect(await contributors()).toEqual(['anna', 'push']);
});

test('a signed commit that is pushed again elsewhere gives no condition there', async () => {
  await policy({ requiredGates: [{ conditionType: TYPE }], givers: [{ conditionType: TYPE, actors: ['anna'] }] });
  await world.draft('apps/app/w1', { Kptfile: kptfile() });
  clock.advance(60_000);
  const signed = await push(draft, { 'app/Kptfile': kptfile('True') }, 'anna');
  await world.store.change('apps.app.w1', { withdraw: [TYPE] }, as('anna'));
  clock.advance(60_000);
  await move('drafts/app/w2', signed);
  expect(await givenBy('apps.app.w2')).not.toBe('anna');
  expect((await world.store.evaluate('apps.app.w2')).gates[0]?.state).toBe('NotAllowed');
  // Nor after a record was written for that draft at an older commit.
  await move('drafts/app/w3', `${signed}~1`);
  await world.store.change('apps.app.w3', { metadata: { labels: { a: 'b' } } }, as('mallory'));
  await move('drafts/app/w3', signed);
  expect((await world.store.evaluate('apps.app.w3')).gates[0]?.state).toBe('NotAllowed');
});

test('a branch that is taken back to a signed commit is pushed by an unknown person', async () => {
  await policy({ requiredGates: [{ conditionType: TYPE }], givers: [{ conditionType: TYPE, actors: ['anna'] }] });
  const { name } = await world.draft('apps/app/w1', { Kptfile: kptfile() });
  clock.advance(60_000);
  const signed = await push(draft, { 'app/Kptfile': kptfile('True') }, 'anna');
  clock.advance(60_000);
  await world.store.change(name, { conditions: [{ type: TYPE, status: 'False' }] }, as('anna'));
  await move(draft, signed);
  const evaluation = await world.store.evaluate(name);
  expect(evaluation.gates[0]?.state).toBe('NotAllowed');
  expect(await contributors()).toContain('push');
});

test('a key counts while its line permits it: not when it expired, nor with a backdated commit', async () => {
  await list(`anna valid-before="20260101Z" ${key('anna')}\n`);
  await push(draft, { 'app/Kptfile': kptfile() }, 'anna');
  expect(await contributors()).toEqual(['push']);
  const back = { GIT_COMMITTER_DATE: '1760000000 +0000', GIT_AUTHOR_DATE: '1760000000 +0000' };
  await push('drafts/app/w2', { 'app/Kptfile': kptfile() }, 'anna', { environment: back });
  expect(await contributors('apps.app.w2')).toEqual(['push']);
  await list(`anna namespaces="file" ${key('anna')}\n`);
  await push('drafts/app/w3', { 'app/Kptfile': kptfile() }, 'anna');
  expect(await contributors('apps.app.w3')).toEqual(['push']);
});

test.each([
  ['*@example.com', 'does not name exactly one user'],
  ['anna,berta', 'does not name exactly one user'],
  ['controller:render', 'controller:render cannot be the name of a user'],
  ['push', 'push cannot be the name of a user'],
  ['system:masters', 'system:masters cannot be the name of a user'],
  ['"an\u200bna"', 'does not name exactly one user'],
])('a line for %s identifies no user', (principal, why) => {
  const { signers, problems } = peopleOf(`${principal} ${key('anna')}\nberta ${key('mallory')}\n`);
  expect(signers.map(({ name }) => name)).toEqual(['berta']);
  expect(problems).toEqual([expect.stringContaining(why)]);
});

test('an invalid file identifies no user, and a key belongs to one person', () => {
  expect(peopleOf(`anna ${key('anna')}\nnonsense\n`)).toMatchObject({
    signers: [],
    problems: [expect.stringContaining('line 2')],
  });
  const two = peopleOf(`anna ${key('anna')}\nmallory ${key('anna')}\n`);
  expect(two.signers.map(({ name }) => name)).toEqual(['anna']);
  expect(two.problems).toEqual(['line 2: the key belongs to anna already (line 1)']);
});
