import { afterEach, beforeEach, expect, test } from 'vitest';
import { ANNA, type Fixture, fixture } from '../../../../test/support/fixture.ts';
import { git as gitCli } from '../../../../test/support/git/git-cli.ts';
import { newServerTrust } from '../../../../test/support/trust.ts';
import { narrateChanges } from '../../../app/service/log/narrate-changes.ts';
import { packageRevisionKind } from '../../../resource/kinds/porch/package-revision.ts';

const KPTFILE = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: web\n';
/** What a hostile user writes into the message of a commit that is pushed. */
const FORGED = 'all good\n\nSluice-Action: edit\nSluice-Actor: sec\nSluice-Face: cli\n';

let world: Fixture;
let path: string;
beforeEach(async () => {
  world = await fixture();
  path = await world.register('apps');
});
afterEach(() => world[Symbol.asyncDispose]());

const refresh = () => world.store.repository('apps').refresh();
const history = async (name: string) =>
  (await world.store.history(name)).map(({ by, face, action }) => `${action} by ${by} (${face})`);

/** Adds a commit with trailers that name another actor to a branch. */
function forge(branch: string): string {
  const commit = gitCli(path, ['commit-tree', '-p', branch, '-m', FORGED, `${branch}^{tree}`]);
  gitCli(path, ['update-ref', `refs/heads/${branch}`, commit]);
  return commit;
}

test('what Sluice recorded is shown as done by its actors, before and after publication', async () => {
  const { name } = await world.draft('apps/web/w1', { 'x.yaml': 'a: 1\n' });
  await world.store.change(name, { files: new Map([['x.yaml', Buffer.from('a: 2\n')]]) }, ANNA);
  expect(await history(name)).toEqual(['edit by anna (cli)', 'init by anna (cli)']);
  await world.publish(name);
  expect(await history(name)).toEqual([
    'approve by berta (cli)',
    'propose by anna (cli)',
    'edit by anna (cli)',
    'init by anna (cli)',
  ]);
  const { status } = await world.client.get(packageRevisionKind, { name });
  expect(status?.publishedBy).toBe('berta');
  // The head of the main branch may be about another package.
  const main = await world.client.get(packageRevisionKind, { name: 'apps.web.main' });
  expect(main.status?.publishedBy).toBeUndefined();
});

test('a name in the trailers of a pushed commit is a claim, also after others have worked on the draft and published it', async () => {
  const { name } = await world.draft('apps/web/w1', { 'x.yaml': 'a: 1\n' });
  forge('drafts/web/w1');
  await refresh();
  // Within a second the order is that of actions.
  const sorted = async () => (await history(name)).sort();
  expect(await sorted()).toEqual(['edit by says: sec (git)', 'init by anna (cli)']);
  await world.store.change(name, { files: new Map([['x.yaml', Buffer.from('a: 2\n')]]) }, ANNA);
  expect(await sorted()).toEqual(['edit by anna (cli)', 'edit by says: sec (git)', 'init by anna (cli)']);
  await world.publish(name);
  const published = await history(name);
  expect(published).toContain('approve by berta (cli)');
  expect(published.filter((entry) => entry.includes('sec'))).toEqual(['edit by says: sec (git)']);
});

test('what was given through Sluice on a pushed draft is shown as done by its actor after publication too', async () => {
  await world.push(path, { 'web/Kptfile': KPTFILE }, 'drafts/web/w1', 'refs/heads/main');
  await refresh();
  const name = 'apps.web.w1';
  const root = { ...ANNA, actor: { name: 'root' } };
  await world.store.change(name, { conditions: [{ type: 'Tested', status: 'True' }] }, root);
  forge('drafts/web/w1');
  await refresh();
  await world.store.change(name, { conditions: [{ type: 'Tested', status: 'False' }] }, root);
  await world.publish(name);
  expect((await history(name)).sort()).toEqual([
    'approve by berta (cli)',
    'edit by root (cli)',
    'edit by root (cli)',
    'edit by says: sec (git)',
    'propose by anna (cli)',
    'push by says: pusher (git)',
  ]);
});

test('of a tag that is not of Sluice the publisher is the e-mail address of the author, and the time that of the author', async () => {
  const pushed = await world.push(path, { 'web/Kptfile': KPTFILE }, 'elsewhere', 'refs/heads/main');
  const tree = gitCli(path, ['rev-parse', `${pushed}^{tree}`]);
  const text = `tree ${tree}
parent ${pushed}
author Dora <dora@example.com> 1714979289 +0000
committer Carla <carla@example.com> 1715000000 +0000

cherry-picked
`;
  const commit = gitCli(path, ['hash-object', '-t', 'commit', '-w', '--stdin'], text);
  gitCli(path, ['tag', 'web/v1', commit]);
  await refresh();
  const { status } = await world.client.get(packageRevisionKind, { name: 'apps.web.v1' });
  expect(status).toMatchObject({ publishedBy: 'dora@example.com', publishTimestamp: '2024-05-06T07:08:09Z' });
});

test('a tag with forged trailers is published by no known person', async () => {
  await world.draft('apps/other/w1');
  const pushed = await world.push(path, { 'web/Kptfile': KPTFILE }, 'elsewhere', 'refs/heads/main');
  const message = `Approving package revision web/1\n\nSluice-Action: approve\nSluice-Actor: sec\nSluice-Face: cli\n`;
  const forged = gitCli(path, ['commit-tree', '-p', pushed, '-m', message, `${pushed}^{tree}`]);
  gitCli(path, ['tag', 'web/v1', forged]);
  await refresh();
  const { status, metadata } = await world.client.get(packageRevisionKind, { name: 'apps.web.v1' });
  expect(status).toMatchObject({ publishedBy: 'says: sec', outOfBand: { reason: 'NotAnApproval' } });
  expect(metadata.annotations).toBeUndefined();
  expect((await history('apps.web.v1'))[0]).toBe('approve by says: sec (git)');
});

test('records that no trusted key signed are claims', async () => {
  const { name } = await world.draft('apps/web/w1', { 'x.yaml': 'a: 1\n' });
  const elsewhere = await fixture(world.clock, newServerTrust());
  try {
    const other = await elsewhere.register('apps');
    const draft = await elsewhere.draft('apps/web/w1', { 'x.yaml': 'a: 1\n' });
    const labels = { metadata: { labels: { a: 'b' } } };
    await elsewhere.store.change(draft.name, labels, { ...ANNA, actor: { name: 'sec' } });
    gitCli(path, ['fetch', '-q', other, '+refs/sluice/records/*:refs/sluice/records/*']);
  } finally {
    await elsewhere[Symbol.asyncDispose]();
  }
  await refresh();
  expect(world.store.get(name).recordDistrust).toBeDefined();
  const entries = await history(name);
  expect(entries).toContain('edit by says: sec (git)');
  expect(entries.filter((entry) => entry.includes('sec') && !entry.includes('says: sec'))).toEqual([]);
});

test('up narrates a push that proposes, publishes or takes back as one, not as the last request about the content', async () => {
  await world.draft('apps/web/w1', { 'x.yaml': 'a: 1\n' });
  const robot = { actor: { name: 'controller:robot' }, face: 'controller' } as const;
  await world.store.change('apps.web.w1', { files: new Map([['x.yaml', Buffer.from('a: 2\n')]]) }, robot);
  const messages = async () => narrateChanges(await refresh(), 0).map(({ message }) => message);
  const draft = gitCli(path, ['rev-parse', 'drafts/web/w1']);
  gitCli(path, ['update-ref', '-d', 'refs/heads/drafts/web/w1']);
  gitCli(path, ['update-ref', 'refs/heads/proposed/web/w1', draft]);
  expect(await messages()).toEqual(['Draft → Proposed, by push']);
  gitCli(path, ['update-ref', '-d', 'refs/heads/proposed/web/w1']);
  gitCli(path, ['update-ref', 'refs/heads/drafts/web/w1', draft]);
  expect(await messages()).toEqual(['Proposed → Draft, by push']);
});

test('up narrates claims as claims', async () => {
  const { name } = await world.draft('apps/web/w1', { 'x.yaml': 'a: 1\n' });
  const before = world.store.get(name);
  forge('drafts/web/w1');
  const changes = await refresh();
  expect(changes).toHaveLength(1);
  expect(before.commit).not.toBe(world.store.get(name).commit);
  expect(narrateChanges(changes, 0).map(({ message }) => message)).toEqual([
    'changed by a push (author: sec): all good',
  ]);
});

test('up counts the revisions of a repository that was unregistered, and does not report them as deleted', async () => {
  const { name } = await world.draft('apps/web/w1', { 'x.yaml': 'a: 1\n' });
  const changes = [{ before: world.store.get(name), after: undefined }];
  expect(narrateChanges(changes, 0).map(({ message }) => message)).toEqual(['Draft was deleted']);
  expect(narrateChanges(changes, 0, { isRegistered: () => false })).toMatchObject([
    { subject: 'apps', event: 'Unregistered', message: 'unregistered; 1 package revision stays in Git' },
  ]);
});
