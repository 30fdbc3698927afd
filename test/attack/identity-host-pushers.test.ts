import { execFileSync } from 'node:child_process';
import { createHmac, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { TrustWorld } from './support/trust-world.ts';

const SECRET = '0123456789abcdef0123456789abcdef';
const OTHER_SECRET = 'fedcba9876543210fedcba9876543210';
const KPTFILE = (name: string) => `apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: ${name}\n`;
const CONFIGURATION = `apiVersion: sluice.dev/v1alpha1
kind: PackagePolicy
metadata: {name: eyes, namespace: default}
spec:
  requiredGates: [{conditionType: reviewed, approveOnly: true}]
  givers: [{conditionType: reviewed, actors: [anna, eve]}]
  approval: {forbidSelfApproval: true}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: people, namespace: default}
data:
  host_users: |
    # at the host
    Eve-H=eve
    anna-h=anna
---
apiVersion: v1
kind: Secret
metadata: {name: apps-hook, namespace: default}
stringData: {token: ${SECRET}}
---
apiVersion: v1
kind: Secret
metadata: {name: other-hook, namespace: default}
stringData: {token: ${OTHER_SECRET}}
---
apiVersion: v1
kind: Secret
metadata: {name: tenant-hook, namespace: tenant}
stringData: {token: ${OTHER_SECRET}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: people, namespace: tenant}
data: {host_users: anna-h=anna}
`;

const configuration = mkdtempSync(join(tmpdir(), 'sluice-attack-configuration-'));
const hosted = join(configuration, 'team');
let world: TrustWorld;
let hooks: string;
beforeAll(async () => {
  const repository = (name: string, annotations: string, namespace = 'default', branch = 'main') => {
    execFileSync('git', ['init', '--quiet', '--bare', '-b', 'main', join(hosted, `${name}.git`)], { stdio: 'ignore' });
    const git = `{repo: ${join(hosted, `${name}.git`)}, branch: ${branch}, createBranch: true}`;
    return `apiVersion: config.porch.kpt.dev/v1alpha1\nkind: Repository\nmetadata:\n  name: ${name}\n  namespace: ${namespace}\n  annotations: {${annotations}}\nspec: {git: ${git}}\n`;
  };
  const repositories = [
    repository('apps', 'sluice.dev/webhook-secret: apps-hook, sluice.dev/host-users: people'),
    repository('other', 'sluice.dev/webhook-secret: other-hook, sluice.dev/host-users: people'),
    repository('shared', 'sluice.dev/webhook-secret: apps-hook, sluice.dev/host-users: people'),
    repository('shared', 'sluice.dev/webhook-secret: tenant-hook, sluice.dev/host-users: people', 'tenant'),
    repository('silent', 'sluice.dev/webhook-secret: apps-hook'),
    repository('branched', 'sluice.dev/webhook-secret: apps-hook, sluice.dev/host-users: people'),
    repository('branched', 'sluice.dev/webhook-secret: tenant-hook, sluice.dev/host-users: people', 'tenant', 'other'),
  ];
  writeFileSync(join(configuration, 'more.yaml'), [CONFIGURATION, ...repositories].join('---\n'));
  world = await TrustWorld.start('--config', join(configuration, 'more.yaml'), '--webhook-listen', '127.0.0.1:0');
  await world.said(/POST \/webhooks\/git/);
  hooks = hooksOf(world);
  for (const name of ['apps', 'other', 'shared', 'silent', 'branched']) {
    await world.ok('repo', 'sync', name);
    execFileSync('git', ['clone', '--quiet', join(hosted, `${name}.git`), world.clone(name)]);
  }
});
afterAll(async () => {
  await world.end();
  rmSync(configuration, { recursive: true, force: true });
});

function hooksOf({ up }: TrustWorld): string {
  return /http:\/\/127\.0\.0\.1:\d+(?= +POST)/.exec(up.output)?.[0] ?? '';
}

interface Report {
  readonly ref: string;
  readonly after: string;
  readonly before?: string;
  readonly user?: string;
  readonly named?: string;
}

/** What Gitea sends after a push. */
function report(
  { ref, after, before = '0'.repeat(40), user = 'eve-h', named = 'apps' }: Report,
  { secret = SECRET, to = 'apps', namespace = 'default' } = {},
): Promise<Response> {
  const pusher = { login: user, username: user };
  const repository = { full_name: `team/${named}` };
  const body = JSON.stringify({ ref: `refs/heads/${ref}`, before, after, pusher, sender: pusher, repository });
  return fetch(`${hooks}/webhooks/git/${namespace}/${to}`, {
    method: 'POST',
    headers: {
      ...{ 'X-Gitea-Event': 'push', 'X-GitHub-Event': 'push', 'X-Gitea-Delivery': randomUUID() },
      'X-Gitea-Signature': createHmac('sha256', secret).update(body).digest('hex'),
    },
    body,
  });
}

/** Eve pushes a draft of her own, of as many commits. */
async function drafted(name: string, commits = 1, repository = 'apps'): Promise<{ ref: string; after: string }> {
  world.git(repository, 'fetch', '--quiet', 'origin');
  let tip = 'origin/main';
  for (let count = 1; count <= commits; count += 1)
    tip = world.edit(repository, tip, { [`${name}/Kptfile`]: KPTFILE(name), [`${name}/x.yaml`]: `# ${count}\n` });
  const ref = `drafts/${name}/v1`;
  await world.push(repository, `${tip}:refs/heads/${ref}`);
  return { ref, after: tip };
}

const changedBy = async (name: string) => /^Changed by: (.*)$/m.exec(await world.why(name))?.[1];

async function propose(name: string): Promise<void> {
  await world.ok('rpkg', 'propose', name, '--as', 'carl');
  await world.ok('rpkg', 'condition', 'set', name, 'reviewed', 'True', '--as', 'anna');
}

/** Nothing is known of the pusher, so that eve is let approve, and is one of two. */
async function expectUnknown(name: string): Promise<void> {
  expect(await changedBy(name)).toBe('an unknown user (git push)');
  await propose(name);
  expect(await world.ok('rpkg', 'approve', name, '--as', 'eve')).toBe(
    `${name} approval 1 of 2 recorded; another user has to approve\n`,
  );
}

test('a pusher whom the host reports is a contributor: one other person approves, and the pusher does not', async () => {
  const pushed = await drafted('shop', 3);
  expect((await report(pushed)).status).toBe(202);
  expect(await changedBy('apps.shop.v1')).toBe('eve (git)');
  await propose('apps.shop.v1');
  expect(await world.refused('rpkg', 'approve', 'apps.shop.v1', '--as', 'eve')).toContain(
    'eve changed the content of apps.shop.v1 and must not approve it; another user has to',
  );
  expect(await world.ok('rpkg', 'approve', 'apps.shop.v1', '--as', 'bob')).toBe('apps.shop.v1 approved\n');
  expect(await world.ok('rpkg', 'history', 'apps.shop.v1')).toContain('eve');
});

test('a report after the push was recorded counts too, also in the object', async () => {
  const pushed = await drafted('late');
  await world.ok('rpkg', 'propose', 'apps.late.v1', '--as', 'carl');
  const contributors = async () =>
    JSON.parse(await world.ok('rpkg', 'get', 'apps.late.v1', '-o', 'json')).status.contributors;
  expect(await contributors()).toMatchObject([{ name: 'push' }]);
  expect((await report(pushed)).status).toBe(202);
  await expect.poll(contributors).toMatchObject([{ name: 'eve' }]);
  await world.ok('rpkg', 'condition', 'set', 'apps.late.v1', 'reviewed', 'True', '--as', 'anna');
  expect(await world.refused('rpkg', 'approve', 'apps.late.v1', '--as', 'eve')).toContain('must not approve it');
  expect(await world.ok('rpkg', 'approve', 'apps.late.v1', '--as', 'bob')).toBe('apps.late.v1 approved\n');
});

test('an approval by a pusher before the report does not count', async () => {
  const pushed = await drafted('first');
  const name = 'apps.first.v1';
  await expectUnknown(name);
  expect((await report(pushed)).status).toBe(202);
  expect(await world.why(name)).toContain('Approvals: 0 of 1');
  const status = async () => JSON.parse(await world.ok('rpkg', 'get', name, '-o', 'json')).status;
  await expect.poll(async () => (await status()).approvals).toBeUndefined();
  expect(await world.refused('rpkg', 'approve', name, '--as', 'eve')).toContain('must not approve it');
  expect(await world.ok('rpkg', 'approve', name, '--as', 'bob')).toBe(`${name} approved\n`);
  world.fetch('apps');
  const statement = /^Sluice-Statement: (.*)$/m.exec(world.message('apps', 'refs/all/tags/first/v1'))?.[1] ?? '{}';
  const { approvals, contributors } = JSON.parse(statement).record;
  expect(approvals.map((one: { subject: string }) => one.subject)).toEqual(['bob']);
  expect(contributors).toMatchObject([{ name: 'eve', attributedBy: 'gitea:eve-h' }]);
});

test.each([
  ['the same branch', 'shared'],
  ['another branch', 'branched'],
])(
  'where another namespace has registered %s of the repository, its reports attribute nothing, here or there',
  async (_, repository) => {
    const pushed = await drafted('tenant', 1, repository);
    const there = { secret: OTHER_SECRET, to: repository, namespace: 'tenant' };
    expect((await report({ ...pushed, user: 'anna-h', named: repository }, there)).status).toBe(202);
    // Records are shared too.
    const name = `${repository}.tenant.v1`;
    await world.ok('repo', 'sync', repository, '--namespace', 'tenant');
    for (const step of [
      ['propose', name],
      ['reject', name, '--reason', 'x'],
    ])
      await world.ok('rpkg', ...step, '--namespace', 'tenant');
    await world.ok('repo', 'sync', repository);
    await expectUnknown(name);
  },
);

test('a report by a person without the secret attributes nothing', async () => {
  const pushed = await drafted('forged');
  const answers = [
    await report({ ...pushed, user: 'anna-h' }, { secret: 'not the secret, not the secret' }),
    // The secret of a webhook that this person may know.
    await report({ ...pushed, user: 'anna-h' }, { secret: OTHER_SECRET }),
  ];
  expect(answers.map(({ status }) => status)).toEqual([401, 401]);
  await expectUnknown('apps.forged.v1');
});

test('a report through the webhook of another registration attributes nothing here, also of the same commit', async () => {
  const pushed = await drafted('elsewhere');
  expect(
    (await report({ ...pushed, user: 'anna-h', named: 'other' }, { secret: OTHER_SECRET, to: 'other' })).status,
  ).toBe(202);
  await expectUnknown('apps.elsewhere.v1');
});

test('a report about another repository of the host attributes nothing, and is logged', async () => {
  const pushed = await drafted('fork');
  expect((await report({ ...pushed, user: 'anna-h', named: 'fork-of-apps' })).status).toBe(202);
  await world.said(/a webhook reports a push to \S+\/fork-of-apps, and the repository is .*: its pusher is not used/);
  await expectUnknown('apps.fork.v1');
});

test('the log names the repository once whose pushers are lost because messages are too long to read', async () => {
  const pushed = await drafted('large');
  const named = 'x'.repeat(1024 * 1024);
  for (const user of ['anna-h', 'eve-h', 'carl-h']) expect((await report({ ...pushed, user, named })).status).toBe(202);
  await world.said(/cannot read who pushed to default\/apps: the message of the webhook has more than 1048576 bytes/);
  expect(world.up.output.split('cannot read who pushed to default/apps')).toHaveLength(2);
  expect((await report({ ...pushed, named }, { to: 'silent' })).status).toBe(202);
  expect(world.up.output).not.toContain('cannot read who pushed to default/silent');
  await expectUnknown('apps.large.v1');
});

test('a report about another commit or another branch attributes nothing', async () => {
  const { ref, after } = await drafted('exact');
  const other = world.edit('apps', 'origin/main', { 'exact/Kptfile': KPTFILE('exact'), 'exact/y.yaml': '# y\n' });
  expect((await report({ ref, after: other, user: 'anna-h' })).status).toBe(202);
  expect((await report({ ref: 'drafts/exact/v2', after, user: 'anna-h' })).status).toBe(202);
  await expectUnknown('apps.exact.v1');
});

test('what was on the branch before a reported push stays that of an unknown person', async () => {
  const { ref, after } = await drafted('before');
  const next = world.edit('apps', after, { 'before/y.yaml': '# y\n' });
  await world.push('apps', `${next}:refs/heads/${ref}`);
  expect((await report({ ref, before: after, after: next, user: 'anna-h' })).status).toBe(202);
  expect(await changedBy('apps.before.v1')).toBe('an unknown user (git push), anna (git)');
  await propose('apps.before.v1');
  expect(await world.ok('rpkg', 'approve', 'apps.before.v1', '--as', 'bob')).toContain('approval 1 of 2 recorded');
  expect(await world.refused('rpkg', 'approve', 'apps.before.v1', '--as', 'anna')).toContain('must not approve it');
});

test('the report of a second pusher of a commit counts too after a record names the first one', async () => {
  const pushed = await drafted('second');
  const name = 'apps.second.v1';
  expect((await report({ ...pushed, user: 'anna-h' })).status).toBe(202);
  await world.ok('rpkg', 'propose', name, '--as', 'carl');
  const contributors = async () => JSON.parse(await world.ok('rpkg', 'get', name, '-o', 'json')).status.contributors;
  expect(await contributors()).toMatchObject([{ name: 'anna' }]);
  expect((await report(pushed)).status).toBe(202);
  expect(await changedBy(name)).toBe('anna (git), eve (git)');
  await expect.poll(contributors).toMatchObject([{ name: 'anna' }, { name: 'eve' }]);
  // A user who is not listed is unknown.
  expect((await report({ ...pushed, user: 'mallory' })).status).toBe(202);
  expect(await changedBy(name)).toBe('anna (git), eve (git), an unknown user (git push)');
  await world.ok('rpkg', 'condition', 'set', name, 'reviewed', 'True', '--as', 'anna');
  expect(await world.refused('rpkg', 'approve', name, '--as', 'eve')).toContain('must not approve it');
  expect(await world.ok('rpkg', 'approve', name, '--as', 'bob')).toContain('approval 1 of 2 recorded');
});

test('a branch that is created again on what Sluice had read of an unknown person does not attribute that to its pusher', async () => {
  const { ref, after } = await drafted('again');
  expect(await changedBy('apps.again.v1')).toBe('an unknown user (git push)');
  const next = world.edit('apps', after, { 'again/y.yaml': '# anna\n' });
  await world.push('apps', `:refs/heads/${ref}`);
  await world.push('apps', `${next}:refs/heads/${ref}`);
  expect((await report({ ref, after: next, user: 'anna-h' })).status).toBe(202);
  expect(await changedBy('apps.again.v1')).toBe('an unknown user (git push), anna (git)');
  await propose('apps.again.v1');
  expect(await world.ok('rpkg', 'approve', 'apps.again.v1', '--as', 'eve')).toContain('approval 1 of 2 recorded');
});

test('a branch that was deleted and is pushed again is not explained by the report before the deletion', async () => {
  const { ref, after } = await drafted('reborn');
  expect((await report({ ref, after })).status).toBe(202);
  expect(await changedBy('apps.reborn.v1')).toBe('eve (git)');
  await world.push('apps', `:refs/heads/${ref}`);
  await world.push('apps', `${after}:refs/heads/${ref}`);
  // Eve stays one who changed it.
  expect(await changedBy('apps.reborn.v1')).toBe('an unknown user (git push), eve (git)');
  expect((await report({ ref, after, user: 'anna-h' })).status).toBe(202);
  expect(await changedBy('apps.reborn.v1')).toBe('anna (git), eve (git)');
});

test('a draft that was deleted through Sluice is not explained by earlier reports either', async () => {
  const { ref, after } = await drafted('removed');
  expect((await report({ ref, after })).status).toBe(202);
  await world.ok('rpkg', 'propose', 'apps.removed.v1', '--as', 'carl');
  await world.ok('rpkg', 'reject', 'apps.removed.v1', '--reason', 'x');
  expect(await changedBy('apps.removed.v1')).toBe('eve (git)');
  await world.ok('rpkg', 'del', 'apps.removed.v1');
  await world.push('apps', `${after}:refs/heads/${ref}`);
  expect(await changedBy('apps.removed.v1')).toBe('an unknown user (git push), eve (git)');
});

test('a push that moves a branch keeps the reports on it', async () => {
  const { ref, after } = await drafted('renamed');
  expect((await report({ ref, after })).status).toBe(202);
  await world.push('apps', `${after}:refs/heads/proposed/renamed/v1`, `:refs/heads/${ref}`);
  expect(await changedBy('apps.renamed.v1')).toBe('eve (git)');
});

test('a report on another branch does not explain a commit that Sluice had read of an unknown person', async () => {
  const { ref, after } = await drafted('shift');
  expect(await changedBy('apps.shift.v1')).toBe('an unknown user (git push)');
  await world.push('apps', `${after}:refs/heads/proposed/shift/v1`, `:refs/heads/${ref}`);
  expect((await report({ ref: 'proposed/shift/v1', after, user: 'anna-h' })).status).toBe(202);
  expect(await changedBy('apps.shift.v1')).toBe('an unknown user (git push)');
  // The late report on the branch where it was read first.
  expect((await report({ ref, after, user: 'eve-h' })).status).toBe(202);
  expect(await changedBy('apps.shift.v1')).toBe('eve (git)');
});

test('a user of the host who is not listed stays unknown, for any name', async () => {
  for (const [name, user] of [
    ['unlisted', 'mallory'],
    ['lookalike', 'eve'],
  ] as const) {
    const pushed = await drafted(name);
    expect((await report({ ...pushed, user })).status).toBe(202);
    expect(await world.ok('rpkg', 'history', `apps.${name}.v1`)).toContain(`says: ${user} at gitea`);
    await expectUnknown(`apps.${name}.v1`);
  }
});

test('if a Repository does not enable them, reports attribute nothing', async () => {
  const pushed = await drafted('quiet', 1, 'silent');
  expect((await report({ ...pushed, named: 'silent' }, { to: 'silent' })).status).toBe(202);
  await expectUnknown('silent.quiet.v1');
});

test('a report makes no user the issuer of a condition', async () => {
  world.git('apps', 'fetch', '--quiet', 'origin');
  const status = 'status:\n  conditions:\n    - type: reviewed\n      status: "True"\n';
  const tip = world.edit('apps', 'origin/main', { 'given/Kptfile': KPTFILE('given') + status });
  const ref = 'drafts/given/v1';
  await world.push('apps', `${tip}:refs/heads/${ref}`);
  expect((await report({ ref, after: tip, user: 'anna-h' })).status).toBe(202);
  expect(await changedBy('apps.given.v1')).toBe('anna (git)');
  await world.ok('rpkg', 'propose', 'apps.given.v1', '--as', 'carl');
  expect(await world.refused('rpkg', 'approve', 'apps.given.v1', '--as', 'bob')).toContain('reviewed');
  expect(await world.why('apps.given.v1')).toContain('Gates: 0 of 1 open');
});

test('a push to a proposal, reported by the host, makes its pusher a contributor and the proposer', async () => {
  const name = await world.gated('apps', 'moved');
  await world.ok('rpkg', 'condition', 'set', name, 'tested', 'True');
  await world.ok('rpkg', 'propose', name, '--as', 'carl');
  world.fetch('apps');
  const before = world.git('apps', 'rev-parse', 'refs/all/heads/proposed/moved/v1');
  const tip = world.edit('apps', before, { 'moved/evil.yaml': '# evil\n' });
  await world.push('apps', `${tip}:refs/heads/proposed/moved/v1`);
  expect((await report({ ref: 'proposed/moved/v1', before, after: tip })).status).toBe(202);
  expect(await changedBy(name)).toBe('anna (api), eve (git)');
  for (const type of ['tested', 'reviewed']) await world.ok('rpkg', 'condition', 'set', name, type, 'True');
  const [commit = ''] = world.git('apps', 'ls-remote', 'origin', 'refs/heads/proposed/moved/v1').split('\t');
  expect(await world.refused('rpkg', 'approve', name, '--as', 'eve', '--commit', commit)).toContain(
    'must not approve it',
  );
  expect(await world.ok('rpkg', 'approve', name, '--as', 'bob', '--commit', commit)).toBe(`${name} approved\n`);
});

test('names that Sluice gives to unknown pushers and to controllers are no names of approvers', async () => {
  await drafted('reserved');
  await propose('apps.reserved.v1');
  for (const name of ['push', 'controller:approval', 'system:admin'])
    expect(await world.refused('rpkg', 'approve', 'apps.reserved.v1', '--as', name)).toContain('the name is reserved');
});

test('reports outlive the server', async () => {
  const pushed = await drafted('kept');
  expect((await report(pushed)).status).toBe(202);
  await world.restart(() => undefined);
  expect(await changedBy('apps.kept.v1')).toBe('eve (git)');
});
