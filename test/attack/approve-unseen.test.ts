import { execFileSync } from 'node:child_process';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { narrateChanges } from '../../src/app/service/log/narrate-changes.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import type { IndexChange } from '../../src/package/index/state/index-delta.ts';
import { lastRequestOf } from '../../src/package/model/revision/attribution.ts';
import { packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import type { RequestContext } from '../../src/resource/object/request-context.ts';
import { ANNA, type Fixture, fixture } from '../support/fixture.ts';

const BOB: RequestContext = { actor: { name: 'bob' }, face: 'api' };
/** A user who may write package revisions and not approve. */
const EDITOR: RequestContext = { actor: { name: 'ed' }, face: 'api', mayApprove: async () => false };
const KEY = { namespace: 'default', name: 'apps.web.v1' };

let clock: ManualClock;
let world: Fixture;
let bare: string;
beforeEach(async () => {
  clock = new ManualClock(Date.parse('2026-01-02T03:04:05Z'));
  world = await fixture(clock);
  bare = await world.register('apps');
});
afterEach(() => world[Symbol.asyncDispose]());

const git = (...words: string[]) =>
  execFileSync('git', ['-C', bare, '-c', 'user.name=bob', '-c', 'user.email=eve@example.com', ...words], {
    encoding: 'utf8',
  }).trim();
const look = () => world.store.repository('apps').refresh();
const storage = () => world.registry.storage(packageRevisionKind);
const object = () => storage().get(BOB, KEY);
const lifecycle = async () => (await object()).spec.lifecycle;

describe('an approval applies to the proposed content', () => {
  /** Eve adds a file to the proposal. */
  async function pushed(): Promise<string> {
    await world.draft('apps/web/v1');
    await world.store.update('apps.web.v1', { action: 'propose' }, ANNA);
    clock.advance(1000);
    const tip = await world.push(bare, { 'web/evil.yaml': '# evil\n' }, 'proposed/web/v1', 'proposed/web/v1');
    await look();
    return tip;
  }
  const approve = async (context: RequestContext, resourceVersion?: string) => {
    const stored = await object();
    return storage().updateSubResource(context, 'approval', {
      ...stored,
      metadata: { ...stored.metadata, resourceVersion },
      spec: { ...stored.spec, lifecycle: 'Published' },
    });
  };

  test('a later push is published only by an approval that names the reviewed commit', async () => {
    const before = git('rev-parse', 'main');
    const tip = await pushed();
    const refusal = approve(BOB);
    await expect(refusal).rejects.toThrow(/cannot approve apps\.web\.v1: a push changed it after it was proposed/);
    await expect(refusal).rejects.toThrow(`to ${tip} (evil.yaml); look at the difference`);
    await expect(refusal).rejects.toThrow(`--commit ${tip}"`);
    // A patch of kubectl without a version, which the server completes.
    const { resourceVersion } = (await object()).metadata;
    await expect(approve({ ...BOB, namesNoVersion: true }, resourceVersion)).rejects.toThrow('a push changed it');
    expect(git('rev-parse', 'main')).toBe(before);
    await approve(BOB, resourceVersion);
    expect(await lifecycle()).toBe('Published');
  });

  test('without a push it needs no version', async () => {
    await world.draft('apps/web/v1');
    await world.store.update('apps.web.v1', { action: 'propose' }, ANNA);
    await approve(BOB);
    expect(await lifecycle()).toBe('Published');
  });

  test('what is proposed again is what is approved', async () => {
    await pushed();
    await world.store.update('apps.web.v1', { action: 'reject' }, ANNA);
    await world.store.update('apps.web.v1', { action: 'propose' }, ANNA);
    await approve(BOB);
    expect(await lifecycle()).toBe('Published');
  });
});

describe('who may not approve does not change what clusters have', () => {
  beforeEach(async () => {
    await world.draft('apps/web/v1');
    await world.publish('apps.web.v1');
  });
  const relabel = async (context: RequestContext, labels: Record<string, string>) => {
    const stored = await object();
    return storage().update(context, { ...stored, metadata: { ...stored.metadata, labels } });
  };

  test('by the labels of a publication', async () => {
    await expect(relabel(EDITOR, { site: 'east' })).rejects.toThrow(
      'packagerevisions.porch.kpt.dev "apps.web.v1" is forbidden: its labels select where it is delivered; that needs the verb "update" on packagerevisions/approval, which User "ed" does not have',
    );
    await relabel(BOB, { site: 'east' });
    await expect(relabel(EDITOR, {})).rejects.toThrow('its labels select where it is delivered');
    const stored = await object();
    expect(stored.metadata.labels).toMatchObject({ site: 'east' });
    // Annotations select nothing.
    const annotations = { ...stored.metadata.annotations, note: 'x' };
    await storage().update(EDITOR, { ...stored, metadata: { ...stored.metadata, annotations } });
  });

  test('by a deletion: an editor proposes it, and who may approve does it', async () => {
    const stored = await object();
    await storage().update(EDITOR, { ...stored, spec: { ...stored.spec, lifecycle: 'DeletionProposed' } });
    expect(await lifecycle()).toBe('DeletionProposed');
    await expect(storage().delete(EDITOR, KEY)).rejects.toThrow('its deletion takes it off the clusters that have it');
    await expect(relabel(EDITOR, { site: 'east' })).rejects.toThrow('is forbidden');
    await storage().delete(BOB, KEY);
    expect(world.store.find('apps.web.v1')).toBeUndefined();
  });

  test('drafts are theirs', async () => {
    await world.draft('apps/db/v1');
    const key = { namespace: 'default', name: 'apps.db.v1' };
    const stored = await storage().get(EDITOR, key);
    await storage().update(EDITOR, { ...stored, metadata: { ...stored.metadata, labels: { a: 'b' } } });
    await storage().delete(EDITOR, key);
  });
});

describe('names in pushes are claims', () => {
  test('a deletion that a push proposes or withdraws is not attributed to the approver', async () => {
    await world.draft('apps/web/v1');
    await world.publish('apps.web.v1');
    const changes: IndexChange[] = [];
    const unsubscribe = world.store.subscribe((more) => void changes.push(...more));
    const narrated = () => narrateChanges(changes.splice(0), 0).map(({ message }) => message);
    git('update-ref', 'refs/heads/deletionProposed/web/v1', 'refs/tags/web/v1');
    await look();
    expect(lastRequestOf(world.store.get('apps.web.v1'))).toMatchObject({ by: 'push', action: 'push' });
    expect(narrated()).toEqual(['Published → DeletionProposed, by push']);
    await world.store.update('apps.web.v1', { action: 'undo-deletion' }, BOB);
    narrated();
    await world.store.update('apps.web.v1', { action: 'propose-deletion' }, BOB);
    expect(narrated()).toEqual(['Published → DeletionProposed, by bob']);
    git('update-ref', '-d', 'refs/heads/deletionProposed/web/v1');
    await look();
    expect(narrated()).toEqual(['DeletionProposed → Published v1, by push']);
    unsubscribe();
  });

  test('the Git author of a push', async () => {
    const name = 'apps.new.v1';
    await world.push(
      bare,
      { 'new/Kptfile': 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: new\n' },
      'drafts/new/v1',
      'refs/heads/main',
    );
    await look();
    const row = world.store.get(name);
    expect(lastRequestOf(row).by).toMatch(/^says: /);
    expect((await world.store.history(name)).map(({ by }) => by)).toEqual([expect.stringMatching(/^says: /)]);
    expect(narrateChanges([{ before: undefined, after: row }], 0)[0]?.message).toMatch(
      /found as Draft, pushed \(author: /,
    );
  });
});
