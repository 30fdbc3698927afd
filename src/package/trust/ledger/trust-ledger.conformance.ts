import { describe, expect, test } from 'vitest';
import { isSluiceError } from '../../../foundation/sluice-error.ts';
import type { NewMark, StatementScope, TrustedKey, TrustLedger } from './trust-ledger.ts';

const AT = '2026-01-01T00:00:00Z';

export function key(name: string, origin: TrustedKey['origin'] = 'own'): Omit<TrustedKey, 'revocation'> {
  return {
    fingerprint: `SHA256:${name}`,
    publicKey: `ssh-ed25519 ${name}`,
    comment: `of ${name}`,
    origin,
    addedAt: AT,
  };
}

export function scope(name: string): StatementScope {
  return { repository: 'r1', package: `folder/${name}`, workspace: 'v1' };
}

export function raiseOf(name: string, sequence: number, digest = `d${sequence}`, proven = true): NewMark {
  return { scope: scope(name), sequence, digest, proven };
}

/** The common behaviour of every TrustLedger. `open` returns an empty one. */
export function describeTrustLedger(open: () => TrustLedger | Promise<TrustLedger>): void {
  async function withLedger(use: (ledger: TrustLedger) => void): Promise<void> {
    const ledger = await open();
    try {
      use(ledger);
    } finally {
      ledger.close();
    }
  }

  describe('raised marks', () => {
    test('are listed for those who know an earlier version', () =>
      withLedger((ledger) => {
        const first = ledger.raisedSince(0);
        expect(first.scopes).toBeUndefined();
        ledger.raise([raiseOf('x', 1), raiseOf('y', 1)], { durable: false });
        const second = ledger.raisedSince(first.version);
        expect(second.scopes).toEqual([scope('x'), scope('y')]);
        ledger.raise([raiseOf('z', 1)], { durable: true });
        expect(ledger.raisedSince(second.version).scopes).toEqual([scope('z')]);
        expect(ledger.raisedSince(first.version).scopes).toEqual([scope('x'), scope('y'), scope('z')]);
      }));

    test('are not listed where there were too many since', () =>
      withLedger((ledger) => {
        const { version } = ledger.raisedSince(0);
        ledger.raise(
          Array.from({ length: 5000 }, (_, number) => raiseOf(`x${number}`, 1)),
          { durable: false },
        );
        const after = ledger.raisedSince(version);
        expect(after.scopes).toBeUndefined();
        expect(ledger.raisedSince(after.version).scopes).toEqual([]);
      }));
  });

  describe('keys', () => {
    test('stay in the order in which they were added, and are added once', () =>
      withLedger((ledger) => {
        const version = ledger.keysVersion;
        ledger.addKey(key('b'));
        const added = ledger.keysVersion;
        expect(added).not.toBe(version);
        ledger.addKey(key('a', 'added'));
        const both = ledger.keysVersion;
        expect(both).not.toBe(added);
        ledger.addKey({ ...key('b', 'added'), comment: 'another' });
        expect(ledger.keysVersion).toBe(both);
        expect(ledger.keys()).toEqual([key('b'), key('a', 'added')]);
      }));

    test('that are revoked stay so, with the order of the last mark and the heads of all main branches', () =>
      withLedger((ledger) => {
        ledger.addKey(key('a'));
        ledger.raise([raiseOf('x', 1), raiseOf('y', 1)], { durable: false });
        ledger.raise([raiseOf('x', 2)], { durable: true });
        ledger.putRepository({ id: 'r1', address: 'one', mainHeads: { main: 'abc' } });
        ledger.putRepository({ id: 'r2', address: 'two', mainHeads: {} });
        const version = ledger.keysVersion;
        const { order } = ledger.mark(scope('x')) ?? {};
        ledger.revokeKey('SHA256:a', '2026-02-01T00:00:00Z');
        expect(ledger.keysVersion).not.toBe(version);
        const revoked = { ...key('a'), revocation: { at: '2026-02-01T00:00:00Z', order, heads: { 'r1 main': 'abc' } } };
        expect(ledger.keys()).toEqual([revoked]);
        ledger.raise([raiseOf('x', 3)], { durable: false });
        expect(ledger.mark(scope('x'))?.order).toBeGreaterThan(order ?? 0);
        ledger.addKey(key('a'));
        ledger.revokeKey('SHA256:a', '2026-03-01T00:00:00Z');
        expect(ledger.keys()).toEqual([revoked]);
      }));

    test('a revocation covers earlier marks, and no later ones', () =>
      withLedger((ledger) => {
        ledger.addKey(key('a'));
        ledger.raise([raiseOf('x', 1), raiseOf('y', 1)], { durable: false });
        ledger.revokeKey('SHA256:a', AT);
        ledger.raise([raiseOf('z', 1)], { durable: false });
        const order = ledger.keys()[0]?.revocation?.order ?? -1;
        for (const name of ['x', 'y']) expect(ledger.mark(scope(name))?.order).toBeLessThanOrEqual(order);
        expect(ledger.mark(scope('z'))?.order).toBeGreaterThan(order);
      }));

    test('a revocation can name the statements that it covers, and names nothing that is no statement', () =>
      withLedger((ledger) => {
        const digests = ['a', 'b', 'c'].map((letter) => letter.repeat(64));
        ledger.addKey(key('a'));
        ledger.raise([raiseOf('x', 1, digests[0]), raiseOf('y', 1, ''), raiseOf('z', 1, 'c'.repeat(40))], {
          durable: false,
        });
        ledger.raise([raiseOf('w', 1, digests[1])], { durable: true });
        ledger.revokeKey('SHA256:a', AT);
        ledger.raise([raiseOf('v', 1, digests[2])], { durable: true });
        const order = ledger.keys()[0]?.revocation?.order ?? -1;
        expect([...ledger.statementsUpTo(order)].sort()).toEqual(digests.slice(0, 2));
      }));

    test('that are unknown cannot be revoked', () =>
      withLedger((ledger) => {
        const { keysVersion } = ledger;
        const revoke = () => ledger.revokeKey('SHA256:a', AT);
        expect(revoke).toThrow(/^no key with the fingerprint SHA256:a was ever trusted; "sluice key show"/);
        expect(ledger.keysVersion).toBe(keysVersion);
        expect(captured(revoke)).toSatisfy((error) => isSluiceError(error, 'NotFound'));
      }));
  });

  test('repositories are found by id, and by their last address', () =>
    withLedger((ledger) => {
      expect(ledger.repository('r1')).toBeUndefined();
      expect(ledger.repositoryAt('one')).toBeUndefined();
      const first = { id: 'r1', address: 'one', mainHeads: {} };
      const second = { id: 'r2', address: 'one', mainHeads: { main: 'def' } };
      ledger.putRepository(first);
      expect(ledger.repositoryAt('one')).toEqual(first);
      ledger.putRepository(second);
      expect(ledger.repositoryAt('one')).toEqual(second);
      ledger.putRepository({ ...first, mainHeads: { main: 'abc' } });
      expect(ledger.repositoryAt('one')).toEqual({ ...first, mainHeads: { main: 'abc' } });
      ledger.putRepository({ ...first, address: 'three' });
      expect(ledger.repositoryAt('one')).toEqual(second);
      expect(ledger.repository('r1')).toEqual({ ...first, address: 'three' });
      expect(ledger.repositories()).toEqual([second, { ...first, address: 'three' }]);
    }));

  test('a repository is entered once, and again only from the address that it has left', () =>
    withLedger((ledger) => {
      const first = { id: 'r1', address: 'one', mainHeads: { main: 'c1' } };
      expect(ledger.enterRepository(first)).toBe('new');
      ledger.noteMain('r1', 'main', 'c2');
      const noted = { ...first, mainHeads: { main: 'c2' } };
      expect(ledger.enterRepository(first)).toBe('known');
      for (const movedFrom of [undefined, 'three'])
        expect(ledger.enterRepository({ ...first, address: 'two' }, movedFrom)).toBe('elsewhere');
      expect(ledger.repositories()).toEqual([noted]);
      expect(ledger.enterRepository({ ...first, address: 'two' }, 'one')).toBe('known');
      expect(ledger.repositories()).toEqual([{ ...noted, address: 'two' }]);
      expect([ledger.repositoryAt('one'), ledger.repositoryAt('two')?.id]).toEqual([undefined, 'r1']);
    }));

  test('where a main branch is noted is found by its name, and stays with the repository', () =>
    withLedger((ledger) => {
      ledger.noteMain('unknown', 'main', 'c0');
      ledger.putRepository({ id: 'r1', address: '/r1', mainHeads: { main: 'c1' } });
      ledger.putRepository({ id: 'r2', address: '/r1', mainHeads: {} });
      const noted = [
        { id: 'r1', address: '/r1', mainHeads: { main: 'c2', other: 'o1' } },
        { id: 'r2', address: '/r1', mainHeads: {} },
      ];
      ledger.noteMain('r1', 'main', 'c2');
      ledger.noteMain('r1', 'other', 'o1');
      expect(ledger.repositories()).toEqual(noted);
      ledger.raise([], { durable: true });
      expect(ledger.repositories()).toEqual(noted);
      expect(ledger.repositoryAt('/r1')?.id).toBe('r2');
      ledger.addKey(key('a'));
      ledger.noteMain('r1', 'main', 'c3');
      ledger.revokeKey('SHA256:a', AT);
      expect(ledger.keys()[0]?.revocation?.heads).toEqual({ 'r1 main': 'c3', 'r1 other': 'o1' });
      ledger.putRepository({ id: 'r1', address: '/r1', mainHeads: { main: 'c4' } });
      expect(ledger.repository('r1')?.mainHeads).toEqual({ main: 'c4' });
    }));

  describe.each([true, false])('marks with durable: %s', (durable) => {
    test('increase and never decrease', () =>
      withLedger((ledger) => {
        const raise = (...entries: NewMark[]) => ledger.raise(entries, { durable });
        expect(ledger.mark(scope('x'))).toBeUndefined();
        raise(raiseOf('x', 2));
        expect(ledger.mark(scope('x'))).toMatchObject({ sequence: 2, digest: 'd2', proven: true });
        raise(raiseOf('x', 1), raiseOf('y', 7));
        expect(ledger.mark(scope('x'))).toMatchObject({ sequence: 2, digest: 'd2' });
        expect(ledger.mark(scope('y'))).toMatchObject({ sequence: 7 });
        raise(raiseOf('x', 2, 'other'), raiseOf('y', 8), raiseOf('y', 9));
        expect(ledger.mark(scope('x'))).toMatchObject({ sequence: 2, digest: 'd2' });
        expect(ledger.mark(scope('y'))).toMatchObject({ sequence: 9, digest: 'd9' });
        const orders = ['x', 'y'].map((name) => ledger.mark(scope(name))?.order ?? 0);
        expect(orders[1]).toBeGreaterThan(orders[0] ?? 0);
        raise();
      }));

    test('of the same statement become proven, and never less', () =>
      withLedger((ledger) => {
        const raise = (...entries: NewMark[]) => ledger.raise(entries, { durable });
        raise(raiseOf('x', 2, 'a', false));
        const before = ledger.mark(scope('x'));
        expect(before).toMatchObject({ proven: false });
        raise(raiseOf('x', 2, 'b', true), raiseOf('x', 1, 'a', true));
        expect(ledger.mark(scope('x'))).toEqual(before);
        raise(raiseOf('x', 2, 'a', true));
        expect(ledger.mark(scope('x'))).toMatchObject({ sequence: 2, digest: 'a', proven: true });
        raise(raiseOf('x', 2, 'a', false));
        expect(ledger.mark(scope('x'))).toMatchObject({ proven: true });
        raise(raiseOf('x', 3, 'c', false));
        expect(ledger.mark(scope('x'))).toMatchObject({ sequence: 3, proven: false });
      }));

    test('belong to repository, package and workspace together', () =>
      withLedger((ledger) => {
        const other = (change: Partial<StatementScope>) => ({ ...scope('x'), ...change });
        ledger.raise([raiseOf('x', 1)], { durable });
        for (const change of [{ repository: 'r2' }, { package: 'x' }, { workspace: 'v2' }])
          expect(ledger.mark(other(change))).toBeUndefined();
      }));
  });
}

function captured(action: () => void): unknown {
  try {
    action();
  } catch (error) {
    return error;
  }
  return undefined;
}
