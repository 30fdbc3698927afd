import { afterEach, describe, expect, test } from 'vitest';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import { ManualClock } from '../../../foundation/time/manual-clock.ts';
import { configMapKind } from '../../../resource/kinds/core/config-map.ts';
import { MemoryStorage } from '../../../resource/storage/memory/memory-storage.ts';
import { EventLog } from '../../../resource/watch/event-log.ts';
import { describeTrustLedger, key, raiseOf, scope } from '../ledger/trust-ledger.conformance.ts';
import { ClusterTrustLedger, type ClusterTrustLedgerOptions } from './cluster-trust-ledger.ts';
import { LEDGER_LABEL, type LedgerObject, marksName } from './ledger-objects.ts';

const AT = '2026-02-01T00:00:00Z';
const context = { actor: { name: 'test' }, face: 'controller' } as const;

/** Config maps whose writes fail while `failure` is set. */
class FailingMaps extends MemoryStorage<LedgerObject> {
  failure: SluiceError | undefined;
  refuses = (_name: string): boolean => false;
  writes = 0;
  reads = 0;

  override get(...args: Parameters<MemoryStorage<LedgerObject>['get']>) {
    this.reads += 1;
    return super.get(...args);
  }

  override create(...args: Parameters<MemoryStorage<LedgerObject>['create']>) {
    return this.#writing(args[1].metadata.name) ?? super.create(...args);
  }

  override update(...args: Parameters<MemoryStorage<LedgerObject>['update']>) {
    return this.#writing(args[1].metadata.name) ?? super.update(...args);
  }

  #writing(name: string): Promise<never> | undefined {
    this.writes += 1;
    if (this.refuses(name)) return Promise.reject(new SluiceError('Refused', 'a policy refuses it'));
    return this.failure === undefined ? undefined : Promise.reject(this.failure);
  }
}

const open: ClusterTrustLedger[] = [];
afterEach(() => {
  for (const ledger of open.splice(0)) ledger.close();
});

function cluster() {
  const clock = new ManualClock();
  const objects = new FailingMaps(configMapKind, { clock, log: new EventLog({ clock }) });
  const errors: unknown[] = [];
  const onError = (error: unknown) => void errors.push(error);
  const lead = async (epoch: ClusterTrustLedgerOptions['epoch'], readOnly = false) => {
    const ledger = await ClusterTrustLedger.open({
      readOnly,
      objects,
      namespace: 'sluice',
      name: 'trust',
      epoch,
      clock,
      onError,
    });
    open.push(ledger);
    return ledger;
  };
  return { clock, objects, errors, lead };
}

describe('ClusterTrustLedger', () => {
  describeTrustLedger(() => cluster().lead(1));

  test('gives the next leader everything that was flushed, and no more', async () => {
    const { lead } = cluster();
    const first = await lead(1);
    first.addKey(key('b'));
    first.addKey(key('a', 'added'));
    first.putRepository({ id: 'r1', address: 'one', mainHeads: {} });
    first.putRepository({ id: 'r2', address: 'one', mainHeads: {} });
    first.noteMain('r1', 'main', 'c1');
    first.raise([raiseOf('x', 1), raiseOf('y', 2, 'd2', false)]);
    first.revokeKey('SHA256:b', AT);
    await first.flushed();
    first.raise([raiseOf('x', 9)]);
    const second = await lead(2);
    expect(second.keys()).toEqual(first.keys());
    expect(second.repositories()).toEqual(first.repositories());
    expect(second.repositoryAt('one')?.id).toBe('r2');
    expect(second.mark(scope('x'))).toMatchObject({ sequence: 1 });
    expect(second.mark(scope('y'))).toEqual(first.mark(scope('y')));
    second.raise([raiseOf('z', 1)]);
    expect(second.mark(scope('z'))?.order).toBeGreaterThan(second.keys()[0]?.revocation?.order ?? 99);
  });

  test('of a standby writes nothing, and joins what a watch delivers', async () => {
    const { clock, objects, lead } = cluster();
    const leader = await lead(1);
    const standby = await lead(0, true);
    standby.addKey(key('own'));
    standby.putRepository({ id: 'r9', address: 'nine', mainHeads: {} });
    standby.raise([raiseOf('x', 1)]);
    await standby.flushed();
    await clock.advanceAsync(60_000);
    expect(objects.writes).toBe(0);

    leader.raise([raiseOf('x', 2), raiseOf('y', 1)]);
    leader.putRepository({ id: 'r1', address: 'one', mainHeads: {} });
    await leader.flushed();
    const { version } = standby.raisedSince(Number.MAX_SAFE_INTEGER);
    const { items } = await objects.list(context, {});
    standby.joinObjects(items);
    expect(standby.raisedSince(version).scopes).toEqual(expect.arrayContaining([scope('x'), scope('y')]));
    expect(standby.mark(scope('x'))).toMatchObject({ sequence: 2 });
    expect(standby.repositoryAt('one')?.id).toBe('r1');
    expect(standby.raisedSince(standby.raisedSince(version).version).scopes).toEqual([]);
    const writes = objects.writes;
    await clock.advanceAsync(60_000);
    expect(objects.writes).toBe(writes);
  });

  test('takes nothing back that another process has written meanwhile', async () => {
    const { lead } = cluster();
    const old = await lead(1);
    old.addKey(key('a'));
    old.putRepository({ id: 'r1', address: 'one', mainHeads: { main: 'c1' } });
    old.raise([raiseOf('x', 1)]);
    await old.flushed();
    const next = await lead(2);
    next.raise([raiseOf('x', 5)]);
    next.noteMain('r1', 'main', 'c2');
    next.revokeKey('SHA256:a', AT);
    await next.flushed();
    // The process whose lease has expired resumes.
    old.raise([raiseOf('x', 3), raiseOf('late', 1)]);
    old.noteMain('r1', 'main', 'c1-late');
    old.addKey(key('b'));
    await old.flushed();
    expect(old.mark(scope('x'))).toMatchObject({ sequence: 5 });
    const third = await lead(3);
    expect(third.mark(scope('x'))).toMatchObject({ sequence: 5, digest: 'd5' });
    expect(third.repository('r1')?.mainHeads).toEqual({ main: 'c2' });
    expect(third.keys()[0]?.revocation).toMatchObject({ at: AT });
    expect(third.keys().map(({ fingerprint }) => fingerprint)).toEqual(['SHA256:a', 'SHA256:b']);
    // A mark that comes to light after a revocation is not covered by it, here and for the leaders that follow.
    await next.refresh();
    const revokedAt = next.keys()[0]?.revocation?.order ?? 99;
    expect(next.mark(scope('late'))?.order).toBeGreaterThan(revokedAt);
    await next.flushed();
    expect((await lead(4)).mark(scope('late'))?.order).toBeGreaterThan(revokedAt);
  });

  test('a term whose versions went back chooses an epoch above all that were stored', async () => {
    const { lead } = cluster();
    const first = await lead(1000);
    first.putRepository({ id: 'r1', address: 'one', mainHeads: { main: 'c1' } });
    await first.flushed();
    const second = await lead(async (highest) => Math.max(500, highest + 1));
    second.noteMain('r1', 'main', 'c2');
    await second.flushed();
    expect(second.repository('r1')?.mainHeads).toEqual({ main: 'c2' });
    expect((await lead(async (highest) => highest + 1)).repository('r1')?.mainHeads).toEqual({ main: 'c2' });
  });

  test('the only writer reads no object before it writes it', async () => {
    const { lead, objects } = cluster();
    const ledger = await lead(1);
    ledger.putRepository({ id: 'r1', address: 'one', mainHeads: {} });
    for (let sequence = 1; sequence <= 5; sequence += 1) {
      ledger.raise([raiseOf('x', sequence)]);
      ledger.noteMain('r1', 'main', `c${sequence}`);
      await ledger.flushed();
    }
    expect([objects.reads, objects.writes]).toEqual([0, 10]);
    const next = await lead(2);
    expect(next.mark(scope('x'))).toMatchObject({ sequence: 5 });
    expect(next.repository('r1')?.mainHeads).toEqual({ main: 'c5' });
  });

  /** Packages whose marks are in one object. */
  const [onePackage = '', ...otherPackages] = Array.from({ length: 5000 }, (_, at) => `p${at}`).filter(
    (name) => marksName('trust', scope(name)) === marksName('trust', scope('p0')),
  );

  /** Fills a ledger, and deletes its objects. */
  async function deleteAll(objects: FailingMaps, ledger: ClusterTrustLedger): Promise<string[]> {
    ledger.addKey(key('a'));
    ledger.putRepository({ id: 'r1', address: 'one', mainHeads: { main: 'c1' } });
    ledger.raise([onePackage, ...otherPackages].map((name) => raiseOf(name, 1)));
    await ledger.flushed();
    const { items } = await objects.list(context, {});
    const names = items.map(({ metadata }) => metadata.name);
    for (const name of names) await objects.delete(context, { namespace: 'sluice', name });
    return names;
  }

  test('an object that was deleted is written again with all of its content', async () => {
    const { lead, objects, clock } = cluster();
    const ledger = await lead(1);
    const names = await deleteAll(objects, ledger);
    for (const name of names) ledger.restoreObject(name);
    await clock.advanceAsync(60_000);
    const next = await lead(2);
    expect(next.keys()).toEqual(ledger.keys());
    expect(next.repositories()).toEqual(ledger.repositories());
    expect(otherPackages.length).toBeGreaterThan(1);
    for (const name of otherPackages) expect(next.mark(scope(name))).toEqual(ledger.mark(scope(name)));
  });

  test('a write to an object that was deleted meanwhile restores the marks that it does not change', async () => {
    const { lead, objects } = cluster();
    const ledger = await lead(1);
    await deleteAll(objects, ledger);
    ledger.raise([raiseOf(onePackage, 2)]);
    await ledger.flushed();
    const next = await lead(2);
    expect(next.mark(scope(onePackage))).toMatchObject({ sequence: 2 });
    for (const name of otherPackages) expect(next.mark(scope(name))).toMatchObject({ sequence: 1 });
  });

  test('the failed restoration of an object is repeated', async () => {
    const { lead, objects, clock } = cluster();
    const ledger = await lead(1);
    const [name = ''] = await deleteAll(objects, ledger);
    objects.failure = new SluiceError('Unavailable', 'no server');
    ledger.restoreObject(name);
    await expect(ledger.flushed()).rejects.toMatchObject({ code: 'Unavailable' });
    objects.failure = undefined;
    await clock.advanceAsync(10_000);
    await expect(objects.get(context, { namespace: 'sluice', name })).resolves.toBeDefined();
  });

  test('processes do not write the marks of each other again, unless a revocation is newer', async () => {
    const { lead, objects, clock } = cluster();
    const [one, other] = [await lead(1), await lead(2)];
    other.raise([raiseOf('own', 1), raiseOf('own', 2), raiseOf('own', 3)]);
    other.addKey(key('a'));
    await other.flushed();
    one.raise([raiseOf('x', 1), raiseOf('y', 1)]);
    // The other process finds the same statement in Git before it reads the ledger.
    other.raise([raiseOf('y', 1)]);
    await one.flushed();
    const { writes } = objects;
    const exchange = async () => {
      for (const ledger of [other, one, other]) {
        await ledger.refresh();
        await clock.advanceAsync(60_000);
      }
    };
    await exchange();
    await other.flushed();
    expect(objects.writes).toBe(writes);
    for (const name of ['x', 'y']) expect(other.mark(scope(name))).toEqual(one.mark(scope(name)));

    other.revokeKey('SHA256:a', AT);
    await other.flushed();
    one.raise([raiseOf('z', 1)]);
    await one.flushed();
    await exchange();
    const after = await lead(3);
    const order = after.keys()[0]?.revocation?.order ?? 99;
    for (const name of ['x', 'y']) expect(after.mark(scope(name))?.order).toBeLessThanOrEqual(order);
    expect(after.mark(scope('z'))?.order).toBeGreaterThan(order);
  });

  test('two processes that write the same object at once keep the marks of both', async () => {
    const { lead } = cluster();
    const [one, other] = [await lead(1), await lead(1)];
    const names = Array.from({ length: 200 }, (_, index) => `p${index}`);
    for (const name of names) {
      one.raise([raiseOf(name, 1)]);
      other.raise([raiseOf(name, 2), raiseOf(`other-${name}`, 1)]);
    }
    await Promise.all([one.flushed(), other.flushed()]);
    const after = await lead(2);
    for (const name of names) {
      expect(after.mark(scope(name))).toMatchObject({ sequence: 2 });
      expect(after.mark(scope(`other-${name}`))).toMatchObject({ sequence: 1 });
    }
  });

  test('of two statements at one place all processes settle on the stored one', async () => {
    const { lead } = cluster();
    const [one, other] = [await lead(1), await lead(2)];
    one.raise([raiseOf('x', 1, 'first')]);
    other.raise([raiseOf('x', 1, 'second')]);
    await one.flushed();
    await other.flushed();
    for (const ledger of [one, other, await lead(3)])
      expect(ledger.mark(scope('x'))).toMatchObject({ sequence: 1, digest: 'first' });
  });

  test('a failed write rejects, is reported once, and is repeated until it succeeds', async () => {
    const { lead, objects, errors, clock } = cluster();
    const ledger = await lead(1);
    objects.failure = new SluiceError('Unavailable', 'no server');
    ledger.raise([raiseOf('x', 1)]);
    await expect(ledger.flushed()).rejects.toMatchObject({ code: 'Unavailable' });
    ledger.raise([raiseOf('x', 2), raiseOf('y', 1)]);
    await clock.advanceAsync(20_000);
    expect(errors).toHaveLength(1);
    objects.failure = undefined;
    const stored = async () => {
      await clock.advanceAsync(10_000);
      const next = await lead(2);
      return ['x', 'y'].map((name) => next.mark(scope(name))?.sequence);
    };
    await expect.poll(stored).toEqual([2, 1]);
  });

  test('an object that cannot be written hinders only the repositories with a part in it', async () => {
    const { lead, objects } = cluster();
    const ledger = await lead(1);
    objects.refuses = (name) => name.startsWith('trust-shown-');
    ledger.advanceShown('r1', 'a');
    ledger.raise([{ ...raiseOf('x', 1), scope: { ...scope('x'), repository: 'r2' } }]);
    await ledger.flushed('r2');
    await expect(ledger.flushed('r1')).rejects.toMatchObject({ code: 'Refused' });
    await ledger.flushed('r2');
    expect((await lead(2)).mark({ ...scope('x'), repository: 'r2' })).toMatchObject({ sequence: 1 });
    objects.refuses = () => false;
    await ledger.flushed('r1');
    expect((await lead(2)).shownOf('r1')).toMatchObject({ 1: { number: 1 } });
  });

  test('a failure that passes at once is not one of the caller', async () => {
    const { lead, objects, errors } = cluster();
    const ledger = await lead(1);
    objects.failure = new SluiceError('Internal', 'the server is starting');
    ledger.raise([raiseOf('x', 1)]);
    const flushed = ledger.flushed();
    await expect.poll(() => objects.writes).toBeGreaterThan(1);
    objects.failure = undefined;
    await flushed;
    expect(errors).toEqual([]);
    expect((await lead(2)).mark(scope('x'))).toMatchObject({ sequence: 1 });
  });

  test('the states that were shown are joined: each writer counts for itself, and none goes back', async () => {
    const { lead } = cluster();
    const [one, other] = [await lead(1), await lead(2)];
    const standby = await lead(3, true);
    expect(one.shownOf('r1')).toEqual({});
    expect(one.advanceShown('r1', 'a')).toEqual({ 1: 1 });
    expect(one.advanceShown('r1', 'b')).toEqual({ 1: 2 });
    await one.flushed();
    expect(other.advanceShown('r1', 'c')).toEqual({ 2: 1 });
    await other.flushed();
    expect(standby.advanceShown('r1', 'd')).toBeUndefined();
    await standby.refresh();
    expect(standby.shownOf('r1')).toEqual({ 1: { number: 2, refs: 'b' }, 2: { number: 1, refs: 'c' } });
    expect((await lead(4)).shownOf('r1')).toEqual({ 1: { number: 2, refs: 'b' }, 2: { number: 1, refs: 'c' } });
    expect(standby.shownOf('r2')).toEqual({});
  });

  test('states that an older copy of their object lacks are written again, and those of a deleted one', async () => {
    const { lead, objects } = cluster();
    const ledger = await lead(1);
    ledger.advanceShown('r1', 'a');
    await ledger.flushed();
    const [object] = (await objects.list(context, { namespace: 'sluice' })).items;
    if (object === undefined) throw new Error('there is no object');
    ledger.advanceShown('r1', 'b');
    await ledger.flushed();
    const { metadata } = await objects.get(context, { namespace: 'sluice', name: object.metadata.name });
    const restored = await objects.update(context, { ...object, metadata });
    ledger.joinObjects([restored]);
    await ledger.flushed();
    expect((await lead(2)).shownOf('r1')).toMatchObject({ 1: { number: 2, refs: 'b' } });
    await objects.delete(context, { namespace: 'sluice', name: object.metadata.name });
    ledger.restoreObject(object.metadata.name);
    await ledger.flushed();
    expect((await lead(3)).shownOf('r1')).toMatchObject({ 1: { number: 2 } });
  });

  test('a process that is forgotten among later ones shows nothing more', async () => {
    const { lead } = cluster();
    const first = await lead(1);
    for (let epoch = 2; epoch < 70; epoch += 1) {
      const next = await lead(epoch);
      next.advanceShown('r1', `${epoch}`);
      await next.flushed();
    }
    await first.refresh();
    expect(() => first.advanceShown('r1', 'a')).toThrow('too many others have begun since');
    expect(Object.keys(first.shownOf('r1'))).toHaveLength(64);
  });

  test('writes changes of one moment together, and nothing for what changes nothing', async () => {
    const { lead, objects, clock } = cluster();
    const ledger = await lead(1);
    for (const sequence of [1, 2, 3]) ledger.raise([raiseOf('x', sequence)]);
    await clock.advanceAsync(1000);
    expect(objects.writes).toBe(1);
    ledger.raise([raiseOf('x', 3)]);
    await ledger.flushed();
    expect(objects.writes).toBe(1);
    expect(clock.pending).toBe(0);
  });

  test('a damaged object is refused with its name', async () => {
    const { lead, objects } = cluster();
    const metadata = { name: 'trust-key-1', namespace: 'sluice', labels: { [LEDGER_LABEL]: 'trust' } };
    await objects.create(context, configMapKind.complete({ metadata, data: { content: '{' } }));
    await expect(lead(1)).rejects.toMatchObject({
      code: 'Corrupt',
      message: expect.stringContaining('ConfigMap sluice/trust-key-1 is damaged'),
    });
  });
});
