import { describe, expect, test } from 'vitest';
import { claimFromObject, describeOwner, statusRange } from './claim.ts';
import { formatRange } from './ipv4.ts';
import { poolFromPrefix, poolsFromInstance } from './pool.ts';

describe('pools from objects', () => {
  test('an IPPrefix carries its labels and those that every prefix has', () => {
    const made = poolFromPrefix({
      metadata: { name: 'n3' },
      spec: { networkInstance: { name: 'ran', namespace: 'net' }, prefix: '10.0.0.1/24', labels: { site: 'east' } },
    });
    expect(made).toMatchObject({
      kind: 'network',
      networkInstance: 'net/ran',
      namespace: 'default',
      labels: { site: 'east', 'nephio.org/address-family': 'ipv4', 'nephio.org/prefix-kind': 'network' },
    });
  });

  test.each([
    [{ spec: { kind: 'pool', networkInstance: { name: 'r' }, prefix: '10.0.0.1/24' } }, 'write 10.0.0.0/24'],
    [{ spec: { kind: 'pool', networkInstance: { name: 'r' }, prefix: '2001:db8::/32' } }, 'no IPv4 prefix'],
    [{ spec: { kind: 'lake', networkInstance: { name: 'r' }, prefix: '10.0.0.0/24' } }, 'spec.kind'],
    [{ spec: { prefix: '10.0.0.0/24' } }, 'spec.networkInstance'],
    [{}, 'spec'],
  ])('%j is refused with the field', (object, message) => {
    const problem = { problem: expect.stringContaining(message) };
    expect(poolFromPrefix({ metadata: { name: 'p' }, ...object })).toEqual(problem);
  });

  test('a pool priority must be a number', () => {
    const metadata = { name: 'p', annotations: { 'sluice.dev/pool-priority': 'high' } };
    const spec = { networkInstance: { name: 'r' }, prefix: '10.0.0.0/24' };
    expect(poolFromPrefix({ metadata, spec })).toEqual({ problem: expect.stringContaining('no whole number: high') });
  });

  test('a NetworkInstance gives aggregates, and problems beside them', () => {
    const made = poolsFromInstance({
      metadata: { name: 'internet' },
      spec: {
        prefixes: [
          { prefix: '172.0.0.0/16' },
          { prefix: '1000::/32' },
          { prefix: '10.0.0.0/8', labels: { 'nephio.org/prefix-kind': 'pool' } },
        ],
      },
    });
    expect(made).toMatchObject([
      { name: 'internet.prefixes.0', kind: 'aggregate', networkInstance: 'default/internet' },
      { problem: expect.stringContaining('1000::/32') },
      { name: 'internet.prefixes.2', kind: 'pool' },
    ]);
  });
});

describe('claims from objects', () => {
  const object = (spec: object, status?: unknown): unknown => ({ metadata: { name: 'n3' }, spec, status });
  const networkInstance = { name: 'ran' };

  test('a claim with its status', () => {
    const selector = { matchLabels: { 'nephio.org/cluster-name': 'edge' } };
    const claim = claimFromObject(
      object({ kind: 'network', networkInstance, selector }, { prefix: '10.0.0.10/24', gateway: '10.0.0.1' }),
      'packages',
      'upf',
    );
    if ('problem' in claim) throw new Error(claim.problem);
    expect(claim).toMatchObject({ networkInstance: 'default/ran', matchLabels: selector.matchLabels, kind: 'network' });
    expect(describeOwner(claim.owner)).toBe('IPClaim default/n3 of package packages/upf');
    expect(formatRange(statusRange(claim) ?? { base: 0, length: 0 })).toBe('10.0.0.10/32');
  });

  test('a prefix claim holds its whole prefix', () => {
    const claim = claimFromObject(
      object({ kind: 'pool', networkInstance, prefixLength: 24, createPrefix: true }, { prefix: '10.4.0.0/24' }),
      'packages',
      'upf',
    );
    if ('problem' in claim) throw new Error(claim.problem);
    expect(statusRange(claim)).toEqual({ base: 0x0a040000, length: 24 });
  });

  test.each([
    [{ kind: 'network' }, 'spec.networkInstance'],
    [{ kind: 'aggregate', networkInstance }, 'spec.kind'],
    [{ networkInstance, prefixLength: 'long' }, 'spec.prefixLength'],
    [{ networkInstance, selector: { matchExpressions: [{ key: 'a', operator: 'Exists' }] } }, 'use matchLabels'],
  ])('%j is refused with the field', (spec, message) => {
    expect(claimFromObject(object(spec), 'r', 'p')).toEqual({ problem: expect.stringContaining(message) });
  });

  test('a damaged status is no status', () => {
    const claim = claimFromObject(object({ networkInstance }, { prefix: 7 }), 'r', 'p');
    expect(claim).not.toHaveProperty('hint');
  });
});
