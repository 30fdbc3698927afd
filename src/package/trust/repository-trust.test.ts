import { describe, expect, test } from 'vitest';
import { MemoryTrustLedger } from './ledger/memory-trust-ledger.ts';
import { DELETED, type NewMark } from './ledger/trust-ledger.ts';
import type { RepositoryTrust, Signer, StatementFact } from './repository-trust.ts';
import { payloadOf, STATEMENT_VERSION, type StatementHead, statementDigest } from './statement/statement.ts';
import { fakeKey, fakeSigned, fakeSigner, fakeTrust } from './testing/fake-signatures.ts';

const SCOPE = { package: 'net/upf', workspace: 'v1' };
const T = '2026-01-01T00:00:00Z';

function factOf(sequence: number, signer: Signer = 'own', overrides: object = {}): StatementFact {
  const head = {
    ...{ statement: STATEMENT_VERSION, kind: 'record', repository: 'id', ...SCOPE, sequence, previous: null },
    ...overrides,
  } as StatementHead;
  return { head, digest: statementDigest(payloadOf(head)), signer };
}

function markOf({ head, digest }: StatementFact, proven = true): NewMark {
  return { scope: { ...SCOPE, repository: 'id' }, sequence: head.sequence, digest, proven };
}

function setUp(firstSequence?: () => number) {
  const ledger = new MemoryTrustLedger();
  ledger.addKey(fakeKey('own'));
  ledger.addKey(fakeKey('old'));
  ledger.putRepository({ id: 'id', address: 'r', mainHeads: { main: 'm1' } });
  const trust = fakeTrust(ledger, 'id', firstSequence === undefined ? {} : { firstSequence });
  return { ledger, trust, raise: (...marks: NewMark[]) => ledger.raise(marks) };
}

const reasonOf = (trust: RepositoryTrust, fact?: StatementFact) => trust.distrustOfRecord(fact, SCOPE)?.reason;

describe('why a record does not count', () => {
  test.each<[string, StatementFact | undefined, string | undefined]>([
    ['one of a trusted key', factOf(3), undefined],
    ['no statement', undefined, 'Unsigned'],
    ['not checked yet', { ...factOf(3), signer: undefined }, 'Unverified'],
    ['a bad signature', factOf(3, null), 'BadSignature'],
    ['a key that is not trusted', factOf(3, 'foreign'), 'UntrustedKey'],
    ['another repository', factOf(3, 'own', { repository: 'copy' }), 'OtherRepository'],
    ['another package', factOf(3, 'own', { package: 'net/smf' }), 'OtherRevision'],
    ['another workspace', factOf(3, 'own', { workspace: 'v2' }), 'OtherRevision'],
    ['a foreign statement about another revision', factOf(3, 'foreign', { workspace: 'v2' }), 'OtherRevision'],
  ])('%s', (_, fact, reason) => {
    const { trust } = setUp();
    expect(reasonOf(trust, fact)).toBe(reason);
    if (reason !== undefined) expect(trust.distrustOfRecord(fact, SCOPE)?.message).toMatch(/^.{20,150}$/);
  });

  test('an older one than the last, or another one in its place, was rolled back', () => {
    const { trust, raise } = setUp();
    raise(markOf(factOf(5)));
    expect(reasonOf(trust, factOf(5))).toBeUndefined();
    expect(reasonOf(trust, factOf(6))).toBeUndefined();
    expect(reasonOf(trust, factOf(4))).toBe('RolledBack');
    expect(reasonOf(trust, factOf(5, 'own', { previous: 'other' }))).toBe('RolledBack');
  });

  test('nothing counts up to the deletion of a draft', () => {
    const { trust, raise } = setUp();
    raise({ ...markOf(factOf(6)), digest: DELETED });
    expect([5, 6, 7].map((sequence) => reasonOf(trust, factOf(sequence)))).toEqual([
      'RolledBack',
      'RolledBack',
      undefined,
    ]);
  });

  test('after a key was revoked, its statements count if they were in the ledger before, independent of their dates', () => {
    const { trust, ledger, raise } = setUp();
    const before = factOf(5, 'old');
    raise(markOf(before));
    ledger.revokeKey('old', T);
    expect(reasonOf(trust, before)).toBeUndefined();
    expect(reasonOf(trust, factOf(6, 'old'))).toBe('RevokedKey');
    expect(reasonOf(trust, factOf(6))).toBeUndefined();
    // Known only afterwards.
    raise(markOf(factOf(7, 'old')));
    expect(reasonOf(trust, factOf(7, 'old'))).toBe('RevokedKey');
    const unknown = fakeTrust(ledger, 'id').distrustOfRecord(factOf(1, 'old', { workspace: 'v9' }), {
      ...SCOPE,
      workspace: 'v9',
    });
    expect(unknown).toMatchObject({ reason: 'RevokedKey', message: expect.stringContaining(T) });
  });

  test('a key that is added or revoked is noticed at once', () => {
    const { trust, ledger } = setUp();
    const { version } = trust;
    expect(reasonOf(trust, factOf(1, 'new'))).toBe('UntrustedKey');
    ledger.addKey(fakeKey('new'));
    expect(trust.version).not.toBe(version);
    expect(reasonOf(trust, factOf(1, 'new'))).toBeUndefined();
  });
});

describe('which statement is known to be the last', () => {
  const isProven = (trust: RepositoryTrust, fact: StatementFact, isOwn?: boolean) => trust.isProven(SCOPE, fact, isOwn);

  test('one on a chain that this ledger knows', () => {
    const { trust, ledger, raise } = setUp();
    ledger.addKey(fakeKey('other', 'added'));
    expect(isProven(trust, factOf(1))).toBe(false);
    expect(isProven(trust, factOf(1), true)).toBe(true);
    raise(markOf(factOf(5)));
    expect([4, 5, 6].map((sequence) => isProven(trust, factOf(sequence, 'other')))).toEqual([false, true, true]);
    expect(isProven(trust, factOf(5))).toBe(true);
  });

  test('none that this server signed later than its ledger knows, unless it noted that it signed it', async () => {
    const { trust, raise } = setUp();
    raise(markOf(factOf(5)));
    expect(isProven(trust, factOf(6))).toBe(false);
    expect(trust.isBeyondLedger(factOf(6))).toBe(true);
    const { fact } = await trust.sign(factOf(6).head);
    expect(trust.isBeyondLedger(fact)).toBe(false);
    expect(isProven(trust, fact)).toBe(true);
    // From here on nothing is known that was before.
    trust.noteFirstLook();
    expect(isProven(trust, factOf(5))).toBe(false);
    raise(markOf(factOf(7)));
    expect(isProven(trust, factOf(7))).toBe(true);
  });

  test('one that another process on this ledger has written before it raises its mark', async () => {
    let now = 4;
    const { ledger, trust } = setUp(() => now++);
    trust.noteFirstLook();
    const fact = factOf(1);
    expect(isProven(trust, fact)).toBe(false);
    await fakeTrust(ledger, 'id').sign(fact.head);
    expect(isProven(trust, fact)).toBe(true);
    // Not after the ledger turned out to be older than the repository.
    trust.noteFirstLook();
    expect(isProven(trust, fact)).toBe(false);
  });

  test('none on top of the records at a first sync, except those that this process signs', () => {
    const { trust, raise } = setUp();
    raise(markOf(factOf(3), false));
    expect([3, 5].map((sequence) => isProven(trust, factOf(sequence)))).toEqual([false, false]);
    expect([3, 4].map((sequence) => isProven(trust, factOf(sequence), true))).toEqual([false, true]);
    raise(markOf(factOf(4)));
    expect(isProven(trust, factOf(4))).toBe(true);
  });

  test.each<[string, StatementFact, readonly NewMark[], boolean, boolean | undefined]>([
    ['at a first look', factOf(3), [], true, false],
    ['later, of an unknown chain', factOf(3), [], false, false],
    ['on top of what is known', factOf(6), [markOf(factOf(5))], false, false],
    ['of another server, on top of what is known', factOf(6, 'other'), [markOf(factOf(5))], false, true],
    ['on top of what may be old', factOf(6), [markOf(factOf(5), false)], false, false],
    ['what is known', factOf(5), [markOf(factOf(5))], false, undefined],
    ['what is older', factOf(4), [markOf(factOf(5))], false, undefined],
    ['a foreign one', factOf(6, 'foreign'), [markOf(factOf(5))], false, undefined],
    ['a foreign one at a first look', factOf(6, 'foreign'), [], true, undefined],
    ['one that was not checked yet', { ...factOf(6), signer: undefined }, [], true, undefined],
    ['one about another revision', factOf(6, 'own', { workspace: 'v2' }), [], true, undefined],
    ['one about another repository', factOf(6, 'own', { repository: 'x' }), [], true, undefined],
  ])('the mark of a record that is found: %s', (_, fact, marks, isFirstLook, proven) => {
    const { trust, ledger, raise } = setUp();
    ledger.addKey(fakeKey('other', 'added'));
    raise(...marks);
    expect(trust.markOfFound(fact, SCOPE, isFirstLook)).toEqual(
      proven === undefined ? undefined : markOf(fact, proven),
    );
  });
});

describe('two servers that trust each other', () => {
  /** Both know the repository since `firstLook`. */
  function servers(firstLook: number) {
    let now = firstLook;
    const [a, b] = [new MemoryTrustLedger(), new MemoryTrustLedger()];
    for (const [ledger, own] of [
      [a, 'a'],
      [b, 'b'],
    ] as const)
      for (const name of ['a', 'b']) ledger.addKey(fakeKey(name, name === own ? 'own' : 'added'));
    const trusts = [a, b].map((ledger, index) =>
      fakeTrust(ledger, 'id', { key: index === 0 ? 'a' : 'b', firstSequence: () => now }),
    );
    for (const trust of trusts) trust.noteFirstLook();
    const [onA, onB] = trusts as [RepositoryTrust, RepositoryTrust];
    return { a, onA, onB, at: (time: number) => (now = time) };
  }

  test('a draft that the other one made since the first sync is proven, an earlier one is not', () => {
    const { onA, onB, at } = servers(1000);
    at(2000);
    const made = factOf(onA.next(SCOPE, undefined).sequence, 'a');
    expect(onB.isProven(SCOPE, made)).toBe(true);
    expect(onB.markOfFound(made, SCOPE, false)).toEqual(markOf(made));
    const older = factOf(999, 'a');
    expect(onB.isProven(SCOPE, older)).toBe(false);
    expect(onB.markOfFound(older, SCOPE, false)).toEqual(markOf(older, false));
    // What the first look itself brings may be older than the last one, however late its clock was.
    expect(onB.markOfFound(made, SCOPE, true)).toEqual(markOf(made, false));
  });

  test('a draft that one deleted and the other makes again counts at both', () => {
    const { a, onA, onB, at } = servers(1000);
    at(2000);
    const first = factOf(onA.next(SCOPE, undefined).sequence, 'a');
    a.raise([markOf(first)]);
    onB.raise([markOf(first)], true);
    at(3000);
    const deletion = onB.next(SCOPE, first);
    onB.raise([{ ...markOf(first), sequence: deletion.sequence, digest: DELETED }], true);
    const again = factOf(onA.next(SCOPE, undefined).sequence, 'a');
    expect(reasonOf(onB, again)).toBeUndefined();
    expect(onB.isProven(SCOPE, again)).toBe(true);
    expect(reasonOf(onB, first)).toBe('RolledBack');
  });
});

describe('the next statement', () => {
  test('follows the one that counts, or the last one that was known', () => {
    const { trust, raise } = setUp();
    expect(trust.next(SCOPE, undefined)).toEqual({ sequence: 1, previous: null });
    const [third, fourth] = [factOf(3), factOf(4)];
    expect(trust.next(SCOPE, third)).toEqual({ sequence: 4, previous: third.digest });
    raise(markOf(fourth));
    expect(trust.next(SCOPE, fourth)).toEqual({ sequence: 5, previous: fourth.digest });
    expect(trust.next(SCOPE, third)).toEqual({ sequence: 5, previous: fourth.digest });
    expect(trust.next(SCOPE, undefined)).toEqual({ sequence: 5, previous: fourth.digest });
  });

  test('is above every record of a chain whose end is unknown', () => {
    const { trust, raise } = setUp(() => 1000);
    expect(trust.next(SCOPE, undefined)).toEqual({ sequence: 1000, previous: null });
    raise(markOf(factOf(3), false));
    expect(trust.next(SCOPE, factOf(3))).toEqual({ sequence: 1000, previous: factOf(3).digest });
    raise(markOf(factOf(1000)));
    expect(trust.next(SCOPE, factOf(1000))).toMatchObject({ sequence: 1001 });
  });
});

test('what is signed is what a reader parses', async () => {
  const { trust } = setUp();
  const statement = { ...factOf(1).head, later: undefined, at: new Date(0), count: 2n ** 60n + 1n } as StatementHead;
  const {
    signed: { payload, signature },
    fact,
  } = await trust.sign(statement);
  const read = JSON.parse(payload) as StatementHead;
  expect(read).toEqual({ ...factOf(1).head, at: '1970-01-01T00:00:00.000Z', count: 2 ** 60 });
  expect(payloadOf(read)).toBe(payload);
  expect(fact).toEqual({ head: statement, digest: statementDigest(payload), signer: 'own' });
  expect(fakeSigner(payload, signature)).toBe('own');
  expect(await trust.signerOf({ statement: read, signature })).toBe('own');
  expect(await trust.signerOf({ statement: { ...read, sequence: 2 }, signature })).toBeNull();
  expect(await trust.signerOf(fakeSigned(statement, 'foreign'))).toBe('foreign');
});

test('a revocation keeps the heads of main branches up to which publications count', () => {
  const { trust, ledger } = setUp();
  expect(trust.revocationOf('old')).toBeUndefined();
  expect(trust.revokedHeads()).toEqual([]);
  ledger.revokeKey('old', T);
  expect(trust.revocationOf('old')).toMatchObject({ head: 'm1', key: { fingerprint: 'old' } });
  expect(fakeTrust(ledger, 'other').revocationOf('old')).toMatchObject({ head: undefined });
  expect(fakeTrust(ledger, 'id', { branch: 'other' }).revocationOf('old')).toMatchObject({ head: undefined });
  expect(trust.revokedHeads()).toEqual(['m1']);
  expect(trust.distrustOfSigner('old')).toBeUndefined();
  for (const signer of [null, undefined, 'foreign', 'own']) expect(trust.revocationOf(signer)).toBeUndefined();
});

test('a process that cannot write an id follows the one that another process has written', async () => {
  const ledger = new MemoryTrustLedger();
  const writeId = async () => 'own';
  const trust = fakeTrust(ledger, 'address-1', { address: 'https://git.example.com/a', writeId });
  trust.followId();
  expect(trust.repository).toBe('address-1');
  ledger.putRepository({ id: 'r2', address: 'https://git.example.com/b', mainHeads: {} });
  ledger.putRepository({ id: 'r1', address: 'https://git.example.com/a', mainHeads: {} });
  expect([trust.repository, trust.knownId]).toEqual(['address-1', 'r1']);
  trust.followId();
  expect(trust.repository).toBe('r1');
  await trust.expectId();
  expect(trust.repository).toBe('r1');
});

test('a process follows the new id that another one has given the repository', async () => {
  const [ledger, address] = [new MemoryTrustLedger(), 'https://git.example.com/a'];
  const trust = fakeTrust(ledger, 'r1', { address });
  ledger.putRepository({ id: 'r1', address, mainHeads: {} });
  ledger.putRepository({ id: 'r2', address, mainHeads: {} });
  await trust.expectId();
  expect(trust.repository).toBe('r2');
  ledger.putRepository({ id: 'r3', address, mainHeads: {} });
  trust.followId();
  expect(trust.repository).toBe('r3');
});
