import { expect, test } from 'vitest';
import type { FunctionRule } from '../model/function-rules.ts';
import { testFunction } from '../pipeline/testing.ts';
import { Catalog, type ResolvedFunction } from './catalog.ts';

const setLabels = testFunction('set-labels', () => undefined);
const catalog = new Catalog([setLabels, testFunction('other', () => undefined)]);

/** In short. */
function output(resolved: ResolvedFunction): string {
  switch (resolved.type) {
    case 'builtIn':
      return `built-in ${resolved.fn.name}`;
    case 'exec':
      return `exec ${resolved.path}`;
    case 'container':
      return resolved.image;
    case 'forbidden':
      return `forbidden: ${resolved.message}`;
  }
}

const image = (name: string, rules: readonly FunctionRule[] = [], tag?: string) =>
  output(catalog.resolve({ image: name, ...(tag === undefined ? {} : { tag }) }, rules));

test('a built-in function is found by its name, with any registry, tag and digest', () => {
  const digest = `sha256:${'a'.repeat(64)}`;
  for (const name of [
    'set-labels',
    'set-labels:v0.1',
    'gcr.io/kpt-fn/set-labels:v0.1.5',
    'ghcr.io/kptdev/krm-functions-catalog/set-labels',
    'localhost:5000/set-labels:latest',
    'evil.example/set-labels',
    `docker.io/nephio/set-labels:v1@${digest}`,
  ])
    expect(image(name), name).toBe('built-in set-labels');
});

test('other images are containers, complete with registry and tag', () => {
  expect(image('mystery')).toBe('ghcr.io/kptdev/krm-functions-catalog/mystery:latest');
  expect(image('mystery:v2')).toBe('ghcr.io/kptdev/krm-functions-catalog/mystery:v2');
  expect(image('localhost:5000/mystery')).toBe('localhost:5000/mystery:latest');
  expect(image('nephio/mystery:v1', [], 'v2')).toBe('nephio/mystery:v2');
  expect(image('nephio/mystery@sha256:abc', [], 'v2')).toBe('nephio/mystery:v2');
  expect(image('nephio/mystery@sha256:abc')).toBe('nephio/mystery@sha256:abc');
  expect(image('nephio/set-labels-fn')).toBe('nephio/set-labels-fn:latest');
});

test('exec is a program; rules are about images', () => {
  const rules: FunctionRule[] = [{ image: 'set-labels', action: { type: 'forbid', message: 'no' } }];
  expect(output(catalog.resolve({ exec: './set-labels -v' }, rules))).toBe('exec ./set-labels -v');
});

test('the first rule that matches counts, by short name, by full name or by the name as it is written', () => {
  const container: FunctionRule = { image: 'gcr.io/kpt-fn/set-labels', action: { type: 'container' } };
  const pinned: FunctionRule = { image: 'mystery', action: { type: 'container', digest: `sha256:${'b'.repeat(64)}` } };
  const forbidden: FunctionRule = { image: 'set-labels', action: { type: 'forbid', message: 'ask the platform team' } };
  const rules = [container, pinned, forbidden];
  expect(image('gcr.io/kpt-fn/set-labels:v1', rules)).toBe('gcr.io/kpt-fn/set-labels:v1');
  expect(image('set-labels:v1', rules)).toBe('forbidden: ask the platform team');
  expect(image('nephio/mystery:v1', rules)).toBe(`nephio/mystery@sha256:${'b'.repeat(64)}`);
  const short: FunctionRule = {
    image: 'ghcr.io/kptdev/krm-functions-catalog/set-labels',
    action: { type: 'exec', path: 'labels' },
  };
  expect(image('set-labels', [short])).toBe('exec labels');
  expect(image('gcr.io/kpt-fn/set-labels', [short])).toBe('built-in set-labels');
  const written: FunctionRule = { image: 'nephio/mystery', action: { type: 'builtIn', name: 'other' } };
  expect(image('nephio/mystery:v1', [written])).toBe('built-in other');
});

test('a rule may hold for some tags only, and the tag of the entry is the one that counts', () => {
  const rules: FunctionRule[] = [
    { image: 'set-labels', tags: ['v1', 'latest'], action: { type: 'exec', path: 'old' } },
  ];
  expect(image('set-labels:v1', rules)).toBe('exec old');
  expect(image('set-labels', rules)).toBe('exec old');
  expect(image('set-labels:v2', rules)).toBe('built-in set-labels');
  expect(image('set-labels:v2', rules, 'v1')).toBe('exec old');
  expect(image(`set-labels@sha256:${'a'.repeat(64)}`, rules)).toBe('built-in set-labels');
});

test('a rule that names a missing function reports it', () => {
  const rules: FunctionRule[] = [{ image: 'mystery', action: { type: 'builtIn', name: 'nope' } }];
  expect(image('mystery', rules)).toMatch(/^forbidden: .*"nope".*correct the policy/);
});

test('a later function replaces an earlier one of its name', () => {
  const mine = testFunction('set-labels', () => undefined);
  const both = new Catalog([setLabels, mine]);
  expect(both.resolve({ image: 'set-labels' }, [])).toEqual({ type: 'builtIn', fn: mine });
});

test('names of images that are none resolve to something, too', () => {
  for (const name of ['', '/', ':', '@', 'a/', ':tag', '@digest', '__proto__', 'constructor'])
    expect(image(name)).not.toContain('built-in');
});

test('the digest distinguishes functions and rules', () => {
  const rule: FunctionRule = { image: 'set-labels', action: { type: 'container' } };
  const digests = [
    catalog.functionsDigest([]),
    catalog.functionsDigest([rule]),
    catalog.functionsDigest([{ ...rule, tags: ['v1'] }]),
    new Catalog([setLabels]).functionsDigest([]),
  ];
  expect(new Set(digests).size).toBe(4);
  expect(catalog.functionsDigest([{ ...rule }])).toBe(digests[1]);
});
