import { execFileSync } from 'node:child_process';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ManualClock, settle } from '../../src/foundation/time/manual-clock.ts';
import type { Action } from '../../src/package/model/revision/revision-state.ts';
import type { ServerTrust } from '../../src/package/store/opening/open-repository-trust.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import type { RequestContext } from '../../src/resource/object/request-context.ts';
import { ANNA, type Fixture, fixture } from '../support/fixture.ts';
import { newServerTrust } from '../support/trust.ts';

const BERTA: RequestContext = { actor: { name: 'berta' }, face: 'cli' };
const GATED =
  'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: web\ninfo:\n  readinessGates:\n    - conditionType: tested\n';

let clock: ManualClock;
let trust: ServerTrust;
let world: Fixture;
let bare: string;
beforeEach(async () => {
  clock = new ManualClock(Date.parse('2026-01-02T03:04:05Z'));
  trust = newServerTrust();
  world = await fixture(clock, trust);
  bare = await world.register('apps');
});
afterEach(() => world[Symbol.asyncDispose]());

/** Eve runs git on the repository as if she pushed. */
const git = (...words: string[]) =>
  execFileSync('git', ['-C', bare, '-c', 'user.name=eve', '-c', 'user.email=eve@example.com', ...words], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  }).trim();
const look = () => world.store.repository('apps').refresh();
const message = (commit: string) => git('log', '-1', '--format=%B', commit);
const step = async (name: string, ...actions: Action[]) => {
  for (const action of actions) await world.store.update(name, { action }, BERTA);
};
const flawOf = (name: string) => world.store.find(name)?.outOfBand?.reason;

/** Eve sets a tag to an annotated one with any message. */
async function annotate(tag: string, target: string, text: string): Promise<void> {
  git('tag', '-a', '-f', '-m', text, tag, target);
  await look();
}

describe('a statement counts in the commit that it was made for, and in no other carrier', () => {
  test('of a publication that was deleted, in a tag on a later commit of the main branch', async () => {
    await world.draft('apps/web/v1');
    await world.publish('apps.web.v1');
    const published = git('rev-parse', 'refs/tags/web/v1');
    await world.draft('apps/db/v1');
    await world.publish('apps.db.v1');
    await step('apps.web.v1', 'propose-deletion', 'delete');
    await annotate('web/v1', 'main', message(published));
    expect(flawOf('apps.web.v1')).toBe('OtherCommit');
    // A tag on the commit itself says no more than the commit does.
    await annotate('web/v1', published, message(published));
    expect(flawOf('apps.web.v1')).toBe('RolledBack');
    git('update-ref', 'refs/tags/web/v1', published);
    await look();
    expect(flawOf('apps.web.v1')).toBe('RolledBack');
  });

  test('in a new commit on the main branch', async () => {
    await world.draft('apps/web/v1');
    await world.publish('apps.web.v1');
    const published = git('rev-parse', 'refs/tags/web/v1');
    await step('apps.web.v1', 'propose-deletion', 'delete');
    const copy = git('commit-tree', '-p', 'main', '-m', message(published), `${published}^{tree}`);
    git('update-ref', 'refs/heads/main', copy);
    git('update-ref', 'refs/tags/web/v1', copy);
    await look();
    expect(flawOf('apps.web.v1')).toBe('OtherCommit');
  });

  test('an adopted publication cannot be restored after its deletion', async () => {
    const commit = await world.push(bare, {
      'old/Kptfile': 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: old\n',
    });
    git('update-ref', 'refs/tags/old/v1', commit);
    await look();
    const repository = world.store.repository('apps');
    await repository.adopt(await repository.adoptable(), ANNA);
    await look();
    expect(world.store.get('apps.old.v1').outOfBand).toBeUndefined();
    await step('apps.old.v1', 'propose-deletion', 'delete');
    git('update-ref', 'refs/tags/old/v1', commit);
    await look();
    expect(flawOf('apps.old.v1')).toBe('RolledBack');
  });
});

describe('a repository that is registered with two branches', () => {
  test('what was published on one of them does not count on the other one, wherever its commit is pushed', async () => {
    git('branch', 'main2', 'main');
    await world.client.create(packagePolicyKind, {
      metadata: { name: 'strict' },
      spec: { selector: { repositories: ['apps'] }, requiredGates: [{ conditionType: 'Reviewed' }] },
    });
    await world.register('lax', { repo: bare, branch: 'main2' });
    await settle();
    await world.draft('lax/two/v1');
    await world.publish('lax.two.v1');
    const published = git('rev-parse', 'refs/tags/two/v1');
    await look();
    expect(flawOf('lax.two.v1')).toBeUndefined();
    expect(flawOf('apps.two.v1')).toBe('OtherBranch');
    // The main branch has not moved since: it is what main2 is, with the approval on it.
    git('update-ref', 'refs/heads/main', published);
    await look();
    expect(world.store.get('apps.two.v1').outOfBand?.message).toBe(
      'two/v1 was approved onto the branch main2, not onto main',
    );
    await annotate('two/v1', published, message(published));
    expect(flawOf('apps.two.v1')).toBe('OtherBranch');
  });
});

describe('the record of a publication is none of a draft', () => {
  /** Web as anna wrote it, with a verdict, approved by berta. */
  async function published(): Promise<string> {
    await world.draft('apps/web/v1', { Kptfile: GATED });
    await world.store.change('apps.web.v1', { conditions: [{ type: 'tested', status: 'True' }] }, ANNA);
    await world.publish('apps.web.v1');
    return git('rev-parse', 'refs/tags/web/v1');
  }

  /** Nothing is known of who wrote the draft, and nothing that was said of it counts. */
  async function expectUnknown(): Promise<void> {
    const { record, gates } = await world.store.evaluate('apps.web.v1');
    expect(record.contributors?.map(({ name }) => name)).toEqual(['push']);
    expect(gates.map(({ state }) => state)).not.toContain('Open');
    expect(world.store.get('apps.web.v1').recordDistrust).toEqual({
      reason: 'OtherRevision',
      message: 'its record was written for the publication web/v1',
    });
  }

  test('what a deletion leaves behind', async () => {
    const commit = await published();
    await step('apps.web.v1', 'propose-deletion', 'delete');
    git('update-ref', 'refs/heads/drafts/web/v1', commit);
    git('update-ref', 'refs/sluice/records/web/v1', 'refs/sluice/deleted/web%2Fv1');
    await look();
    await expectUnknown();
  });

  test.each<[string, Action[]]>([
    ['a proposal of a deletion', ['propose-deletion']],
    ['an undone one', ['propose-deletion', 'reject']],
  ])('what %s leaves behind', async (_, actions) => {
    const commit = await published();
    await step('apps.web.v1', ...actions);
    git('update-ref', 'refs/heads/drafts/web/v1', commit);
    git('update-ref', '-d', 'refs/tags/web/v1');
    await look();
    await expectUnknown();
  });

  test('labels that were set after the publication', async () => {
    const commit = await published();
    await world.store.change('apps.web.v1', { metadata: { labels: { site: 'east' } } }, ANNA);
    git('update-ref', 'refs/heads/drafts/web/v1', commit);
    git('update-ref', '-d', 'refs/tags/web/v1');
    await look();
    await expectUnknown();
  });
});
