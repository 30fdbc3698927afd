import { describe, expect, test } from 'vitest';
import { allocate, allocateAll } from './allocate.ts';
import { deriveTable } from './allocation-table.ts';
import { type Assignment, type Claim, claimedRange } from './claim.ts';
import { parsePrefix } from './ipv4.ts';
import type { AllocationOutcome } from './outcome.ts';
import { type Pool, poolFromPrefix } from './pool.ts';

const NOW = Date.UTC(2026, 0, 1);
const HOUR = 3_600_000;
const options = { gracePeriod: HOUR };

function pool(name: string, kind: string, prefix: string, labels: Record<string, string> = {}, priority = 0): Pool {
  const made = poolFromPrefix({
    metadata: { name, annotations: { 'sluice.dev/pool-priority': String(priority) } },
    spec: { kind, networkInstance: { name: 'ran' }, prefix, labels },
  });
  if ('problem' in made) throw new Error(made.problem);
  return made;
}

function claim(name: string, more: Partial<Claim> = {}): Claim {
  const owner = { repository: 'packages', packagePath: 'upf', namespace: 'default', kind: 'IPClaim', name };
  return { owner, networkInstance: 'default/ran', kind: 'network', matchLabels: {}, ...more };
}

function assignment(of: Claim, value: string, more: Partial<Assignment> = {}): Assignment {
  const range = claimedRange(of, value);
  if (range === undefined) throw new Error(value);
  return { owner: of.owner, networkInstance: of.networkInstance, range, published: true, since: NOW - HOUR, ...more };
}

function run(pools: readonly Pool[], of: Claim, assignments: readonly Assignment[] = [], now = NOW): AllocationOutcome {
  return allocate(deriveTable(pools, assignments, options), of, now);
}

function prefixOf(outcome: AllocationOutcome): string | undefined {
  return outcome.allocated?.prefix;
}

function value(outcome: AllocationOutcome): unknown {
  const { allocated, refused } = outcome;
  if (allocated === undefined) return [refused.reason, refused.message];
  return [allocated.prefix, allocated.gateway, allocated.how];
}

const lan = pool('lan', 'network', '10.0.0.1/24', { 'nephio.org/gateway': 'true', site: 'east' });

describe('network addresses', () => {
  test('the lowest usable address with the length of the subnet and its gateway', () => {
    expect(value(run([lan], claim('n3')))).toEqual(['10.0.0.2/24', '10.0.0.1', 'lowest']);
  });

  test('the gateway may be a labelled prefix of its own in the same subnet', () => {
    const plain = pool('plain', 'network', '10.0.0.0/30', { use: 'n3' });
    const gateway = pool('gw', 'network', '10.0.0.1/32', { 'nephio.org/gateway': 'true' });
    const matchLabels = { use: 'n3' };
    expect(value(run([plain, gateway], claim('n3', { matchLabels })))).toEqual(['10.0.0.2/30', '10.0.0.1', 'lowest']);
  });

  test('a host address without the label is the gateway too, and never given out', () => {
    const host = pool('host', 'network', '10.0.0.2/30');
    expect(value(run([host], claim('n3')))).toEqual(['10.0.0.1/30', '10.0.0.2', 'lowest']);
  });

  test('a subnet without gateway serves only if it is marked so', () => {
    const bare = pool('bare', 'network', '10.0.0.0/24');
    expect(value(run([bare], claim('n3')))).toEqual([
      'NoMatchingPool',
      expect.stringContaining('bare (10.0.0.0/24) has no gateway'),
    ]);
    const none = pool('none', 'network', '10.0.0.0/24', { 'nephio.org/gateway': 'none' });
    expect(value(run([none], claim('n3')))).toEqual(['10.0.0.1/24', undefined, 'lowest']);
  });

  test.each([
    ['10.0.0.1/30', ['10.0.0.2/30']],
    ['10.0.0.1/29', ['10.0.0.2/29', '10.0.0.3/29', '10.0.0.4/29', '10.0.0.5/29', '10.0.0.6/29']],
    ['10.0.0.0/31', ['10.0.0.0/31', '10.0.0.1/31']],
    ['10.0.0.1/31', ['10.0.0.0/31']],
    ['10.0.0.7/32', ['10.0.0.7/32']],
  ])('%s gives exactly its usable addresses', (prefix, expected) => {
    const table = deriveTable([pool('p', 'network', prefix)], [], options);
    const claims = [...expected, 'one too many'].map((name) => claim(name));
    const given = allocateAll(table, claims, NOW).outcomes.map((outcome) => outcome.allocated?.prefix);
    expect(given.filter((prefix) => prefix !== undefined).sort()).toEqual(expected);
    expect(run([pool('p', 'network', prefix)], claim('x'), allAssignments(expected)).refused?.message).toContain(
      `0 of ${expected.length} free`,
    );
  });

  function allAssignments(values: readonly string[]): Assignment[] {
    return values.map((text) => assignment(claim(text), text));
  }

  test('spills over to the next matching pool, by priority and then by name', () => {
    const pools = [
      pool('b', 'network', '10.0.2.1/30'),
      pool('a', 'network', '10.0.1.1/30'),
      pool('z', 'network', '10.0.9.1/30', {}, -1),
    ];
    const table = deriveTable(pools, [], options);
    const { outcomes } = allocateAll(
      table,
      ['1', '2', '3', '4'].map((name) => claim(name)),
      NOW,
    );
    expect(outcomes.map((outcome) => outcome.allocated?.prefix ?? outcome.refused?.reason)).toEqual([
      '10.0.9.2/30',
      '10.0.1.2/30',
      '10.0.2.2/30',
      'PoolExhausted',
    ]);
    expect(outcomes[3]?.refused?.message).toBe(
      'no free address in network instance default/ran: IPPrefix z (10.0.9.0/30): 0 of 1 free; ' +
        'IPPrefix a (10.0.1.0/30): 0 of 1 free; IPPrefix b (10.0.2.0/30): 0 of 1 free',
    );
  });
});

describe('what an owner holds', () => {
  test('it keeps, whatever is lower', () => {
    const mine = claim('n3');
    expect(value(run([lan], mine, [assignment(mine, '10.0.0.77/24')]))).toEqual(['10.0.0.77/24', '10.0.0.1', 'held']);
  });

  test('it loses when it no longer fits the selector', () => {
    const west = pool('west', 'network', '10.9.0.1/24', { site: 'west' });
    const mine = claim('n3', { matchLabels: { site: 'west' } });
    expect(value(run([lan, west], mine, [assignment(mine, '10.0.0.77/24')]))).toEqual([
      '10.9.0.2/24',
      '10.9.0.1',
      'lowest',
    ]);
  });

  test('the published value takes precedence over that of a draft', () => {
    const mine = claim('n3');
    const draft = assignment(mine, '10.0.0.5/24', { published: false, since: 0 });
    expect(prefixOf(run([lan], mine, [draft, assignment(mine, '10.0.0.9/24')]))).toBe('10.0.0.9/24');
  });

  test('a duplicate stays with the published, then the oldest, then the first owner; the other moves', () => {
    const [a, b] = [claim('a'), claim('b')];
    const inDraft = assignment(a, '10.0.0.5/24', { published: false, since: 0 });
    const published = assignment(b, '10.0.0.5/24');
    expect(prefixOf(run([lan], a, [inDraft, published]))).toBe('10.0.0.2/24');
    expect(prefixOf(run([lan], b, [inDraft, published]))).toBe('10.0.0.5/24');

    const older = assignment(b, '10.0.0.5/24', { since: NOW - 2 * HOUR });
    expect(prefixOf(run([lan], b, [assignment(a, '10.0.0.5/24'), older]))).toBe('10.0.0.5/24');
    expect(prefixOf(run([lan], a, [assignment(a, '10.0.0.5/24'), published]))).toBe('10.0.0.5/24');
  });

  test('duplicates are listed with keeper and others, blocks inside blocks too', () => {
    const [a, b, c] = [claim('a'), claim('b'), claim('c', { kind: 'pool' })];
    const assignments = [
      assignment(b, '10.0.0.5/24', { published: false }),
      assignment(a, '10.0.0.5/24'),
      assignment(a, '10.0.0.5/24', { published: false }),
      assignment(c, '10.0.0.64/28', { since: 0 }),
      assignment(a, '10.0.0.70/24'),
    ];
    expect(deriveTable([lan], assignments, options).duplicates()).toEqual([
      { networkInstance: 'default/ran', prefix: '10.0.0.5/32', keeper: a.owner, others: [b.owner] },
      { networkInstance: 'default/ran', prefix: '10.0.0.70/32', keeper: c.owner, others: [a.owner] },
    ]);
    expect(deriveTable([lan], [...assignments, ...assignments].slice(1, 3), options).duplicates()).toEqual([]);
  });

  test('the same address in another network instance is another address', () => {
    const other = { ...claim('x'), networkInstance: 'default/core' };
    expect(prefixOf(run([lan], claim('n3'), [assignment(other, '10.0.0.2/24')]))).toBe('10.0.0.2/24');
  });

  test('the same claim in another package is another owner', () => {
    const mine = claim('n3');
    const other = { ...mine, owner: { ...mine.owner, packagePath: 'upf-2' } };
    expect(prefixOf(run([lan], other, [assignment(mine, '10.0.0.2/24')]))).toBe('10.0.0.3/24');
  });
});

describe('fixed values', () => {
  test.each(['10.0.0.10/24', '10.0.0.10/32', '10.0.0.10'])('%s is given as requested', (prefix) => {
    expect(value(run([lan], claim('n3', { prefix })))).toEqual(['10.0.0.10/24', '10.0.0.1', 'fixed']);
  });

  test('a conflict names the holder', () => {
    const { refused } = run([lan], claim('n3', { prefix: '10.0.0.10' }), [assignment(claim('n6'), '10.0.0.10/24')]);
    expect(refused).toEqual({
      reason: 'AddressConflict',
      message: '10.0.0.10 is held by IPClaim default/n6 of package packages/upf',
      holder: claim('n6').owner,
    });
  });

  test.each([
    ['10.0.0.0/24', 'InvalidClaim', 'it is the network address'],
    ['10.0.0.255/24', 'InvalidClaim', 'it is the broadcast address'],
    ['10.0.0.1/24', 'InvalidClaim', 'it is the gateway'],
    ['10.0.0.10/25', 'InvalidClaim', 'has another length than its subnet'],
    ['10.0.0.010/24', 'InvalidClaim', 'is no IPv4 address'],
    ['2001:db8::1/64', 'InvalidClaim', 'is no IPv4 address'],
    ['10.0.1.10/24', 'NoMatchingPool', 'contains 10.0.1.10/24'],
  ])('%s is refused as %s', (prefix, reason, message) => {
    const { refused } = run([lan], claim('n3', { prefix }));
    expect(refused).toMatchObject({ reason, message: expect.stringContaining(message) });
  });

  test('a change of the fixed value moves the owner, inside what it holds as well', () => {
    const mine = claim('n3', { prefix: '10.0.0.11' });
    expect(value(run([lan], mine, [assignment(mine, '10.0.0.10/24')]))).toEqual(['10.0.0.11/24', '10.0.0.1', 'fixed']);
    const block = claim('dnn', { kind: 'pool', prefix: '10.8.0.0/25' });
    const pools = [pool('p', 'pool', '10.8.0.0/16')];
    expect(value(run(pools, block, [assignment(block, '10.8.0.0/24')]))).toEqual(['10.8.0.0/25', undefined, 'fixed']);
  });

  test('in a batch fixed values are allocated first', () => {
    const claims = [claim('a'), claim('b', { prefix: '10.0.0.2' })];
    const { outcomes } = allocateAll(deriveTable([lan], [], options), claims, NOW);
    expect(outcomes.map((outcome) => outcome.allocated?.prefix)).toEqual(['10.0.0.3/24', '10.0.0.2/24']);
  });
});

describe('status and index', () => {
  test('a free value of the status is taken, one that another claim holds is not', () => {
    const mine = claim('n3', { hint: '10.0.0.40/24' });
    expect(value(run([lan], mine))).toEqual(['10.0.0.40/24', '10.0.0.1', 'status']);
    expect(prefixOf(run([lan], mine, [assignment(claim('n6'), '10.0.0.40/24')]))).toBe('10.0.0.2/24');
  });

  test.each(['172.2.0.0/16', '10.0.0.0/24', '10.0.0.1/24', 'nonsense'])('status %s is not taken', (hint) => {
    expect(value(run([lan], claim('n3', { hint })))).toEqual(['10.0.0.2/24', '10.0.0.1', 'lowest']);
  });

  test('an index counts from the first address of the pool', () => {
    expect(value(run([lan], claim('n3', { index: 100 })))).toEqual(['10.0.0.100/24', '10.0.0.1', 'index']);
    const blocks = [pool('p', 'pool', '10.8.0.0/16')];
    expect(value(run(blocks, claim('d', { kind: 'pool', prefixLength: 24, index: 3 })))).toEqual([
      '10.8.3.0/24',
      undefined,
      'index',
    ]);
    expect(run([lan], claim('n3', { index: 0 })).refused?.message).toContain('network address');
    expect(run([lan], claim('n3', { index: 256 })).refused?.message).toContain('outside every matching pool');
    expect(run([lan], claim('n3', { index: 9 }), [assignment(claim('x'), '10.0.0.9/24')]).refused?.reason).toBe(
      'AddressConflict',
    );
  });

  test('a changed index moves the owner', () => {
    const mine = claim('n3', { index: 100 });
    expect(prefixOf(run([lan], mine, [assignment(mine, '10.0.0.5/24')]))).toBe('10.0.0.100/24');
  });
});

describe('prefixes', () => {
  const aggregate = pool('all', 'aggregate', '10.0.0.0/8');
  const dnn = (name: string, more: Partial<Claim> = {}) =>
    claim(name, { kind: 'pool', prefixLength: 24, createPrefix: true, ...more });

  test('the lowest aligned block outside more specific pools', () => {
    const pools = [aggregate, lan, pool('p', 'pool', '10.0.1.0/24', { use: 'other' })];
    const of = claim('net', { createPrefix: true, prefixLength: 24 });
    expect(value(run(pools, of))).toEqual(['10.0.2.0/24', undefined, 'lowest']);
  });

  test('a more specific pool of the same kind keeps its addresses for claims that match it', () => {
    const matchLabels = { site: 'east' };
    const inner = pool('inner', 'network', '10.0.0.0/28', { 'nephio.org/gateway': 'none' });
    expect(value(run([lan, inner], claim('n3', { matchLabels })))).toEqual(['10.0.0.16/24', '10.0.0.1', 'lowest']);
    expect(run([lan, inner], claim('n3', { matchLabels, prefix: '10.0.0.9' })).refused).toMatchObject({
      reason: 'InvalidClaim',
      message: expect.stringContaining('belongs to a more specific IPPrefix'),
    });
    const half = pool('half', 'aggregate', '10.0.0.0/9', { site: 'west' });
    const east = pool('whole', 'aggregate', '10.0.0.0/8', matchLabels);
    expect(value(run([east, half], dnn('a', { matchLabels })))).toEqual(['10.128.0.0/24', undefined, 'lowest']);
  });

  test('a pool before an aggregate, then the aggregate', () => {
    const pools = [aggregate, pool('p', 'pool', '10.8.0.0/24')];
    const table = deriveTable(pools, [], options);
    const { outcomes } = allocateAll(table, [dnn('a'), dnn('b'), dnn('c', { prefixLength: 25 })], NOW);
    expect(outcomes.map((outcome) => outcome.allocated?.prefix)).toEqual(['10.8.0.0/24', '10.0.0.0/24', '10.0.1.0/25']);
  });

  test('a loopback address has no gateway and may be the first of its pool', () => {
    const pools = [aggregate, pool('lo', 'loopback', '10.255.0.0/24')];
    expect(value(run(pools, claim('lo', { kind: 'loopback' })))).toEqual(['10.255.0.0/32', undefined, 'lowest']);
  });

  test('exhaustion distinguishes blocks from addresses', () => {
    const pools = [pool('p', 'pool', '10.8.0.0/24')];
    const { refused } = run(pools, dnn('a'), [assignment(claim('x'), '10.8.0.7')]);
    expect(refused).toEqual({
      reason: 'PoolExhausted',
      message: 'no free /24 in network instance default/ran: IPPrefix p (10.8.0.0/24): 255 of 256 free',
    });
  });

  test.each([
    [{ prefixLength: 33 }, 'is more than 32'],
    [{ prefix: '10.8.0.1/24' }, 'has host bits: write 10.8.0.0/24'],
    [{ prefix: '10.8.0.0/25' }, 'disagree'],
  ])('%j is refused', (more, message) => {
    expect(run([aggregate], dnn('a', more)).refused).toMatchObject({
      reason: 'InvalidClaim',
      message: expect.stringContaining(message),
    });
  });

  test('a prefix needs a length, an address must not have one', () => {
    expect(run([aggregate], claim('a', { kind: 'pool' })).refused?.message).toContain('spec.prefixLength is missing');
    expect(run([lan], claim('a', { prefixLength: 24 })).refused?.message).toContain('createPrefix');
  });

  test('an address is never cut out of an aggregate', () => {
    expect(run([aggregate], claim('n3')).refused).toMatchObject({
      reason: 'NoMatchingPool',
      message: expect.stringContaining('all (10.0.0.0/8) is of kind aggregate, not network'),
    });
  });
});

describe('no pool', () => {
  test('names the labels that differ, the nearest pool first', () => {
    const pools = [lan, pool('core', 'network', '10.1.0.1/24')];
    const matchLabels = { site: 'west', 'nephio.org/address-family': 'ipv4' };
    expect(run(pools, claim('n3', { matchLabels })).refused?.message).toBe(
      'no IPPrefix of network instance default/ran matches the claim; ' +
        'nearest: core (10.1.0.0/24) has no label site=west; lan (10.0.0.0/24) has site=east, not west',
    );
  });

  test('names the instances that have pools', () => {
    expect(run([lan], claim('n3', { networkInstance: 'default/core' })).refused?.message).toBe(
      'no IPPrefix for network instance default/core: there are pools for default/ran',
    );
  });

  test('labels named like members of objects are just labels', () => {
    expect(run([lan], claim('n3', { matchLabels: { constructor: 'x' } })).refused?.reason).toBe('NoMatchingPool');
  });
});

describe('released values', () => {
  const tiny = pool('tiny', 'network', '10.0.0.1/30');
  const removed = assignment(claim('gone'), '10.0.0.2/30', { released: NOW - HOUR / 2 });

  test('are kept back for the grace period, and reported so', () => {
    expect(run([tiny], claim('n3'), [removed]).refused).toMatchObject({
      reason: 'AwaitingRelease',
      retryAt: NOW + HOUR / 2,
      message: expect.stringContaining('a released value becomes free at 2026-01-01T00:30:00Z'),
    });
    expect(run([tiny], claim('n3', { prefix: '10.0.0.2' }), [removed]).refused).toMatchObject({
      reason: 'AwaitingRelease',
      retryAt: NOW + HOUR / 2,
      holder: claim('gone').owner,
    });
  });

  test('are allocated to their former owner again', () => {
    expect(value(run([tiny], claim('gone'), [removed]))).toEqual(['10.0.0.2/30', '10.0.0.1', 'held']);
  });

  test('are free when the grace period is over', () => {
    expect(prefixOf(run([tiny], claim('n3'), [removed], NOW + HOUR / 2))).toBe('10.0.0.2/30');
  });

  test('are not free while another revision has them', () => {
    const still = assignment(claim('gone'), '10.0.0.2/30', { published: false });
    expect(run([tiny], claim('n3'), [removed, still], NOW + 10 * HOUR).refused?.reason).toBe('PoolExhausted');
  });
});

test('a table follows additions and removals', () => {
  const table = deriveTable([lan], [], options);
  const first = assignment(claim('a'), '10.0.0.2/24');
  table.add(first);
  table.add(first);
  table.remove(first);
  expect(table.usage()).toMatchObject([{ total: 253, free: 252 }]);
  table.remove(first);
  table.remove(first);
  expect(table.usage()).toMatchObject([{ total: 253, free: 253 }]);
});

test('prefixes are read strictly', () => {
  expect(
    ['10.1/16', '010.0.0.1/8', '10.0.0.0/33', '10.0.0.0/', '1.2.3.4/8/9', '300.1.1.1', ''].map(parsePrefix),
  ).toEqual(new Array(7).fill(undefined));
  expect(parsePrefix('255.255.255.255/0')).toEqual({ address: 0xffffffff, range: { base: 0, length: 0 } });
});
