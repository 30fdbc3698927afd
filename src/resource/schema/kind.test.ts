import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { isBranchName, normalizeDirectory } from '../kinds/common/git-location.ts';
import { secretKind, secretText } from '../kinds/core/secret.ts';
import { OBJECT_KINDS, PACKAGE_KINDS } from '../kinds/index.ts';
import { ipClaimKind, ipPrefixKind } from '../kinds/ipam/ipam.ts';
import { packageRevisionKind } from '../kinds/porch/package-revision.ts';
import { packageRevisionResourcesKind } from '../kinds/porch/package-revision-resources.ts';
import { repositoryKind } from '../kinds/porch/repository.ts';
import { deliveryTargetKind } from '../kinds/sluice/delivery/delivery-target.ts';
import { packagePolicyKind } from '../kinds/sluice/package-policy.ts';
import { defineKind } from './define-kind.ts';
import { thrownCauses, widgetKind } from './testing.ts';

describe('defineKind', () => {
  test('fills in names and defaults', () => {
    expect(widgetKind.complete({ metadata: { name: 'a' }, spec: {} })).toEqual({
      apiVersion: 'test.sluice.dev/v1',
      kind: 'Widget',
      metadata: { name: 'a' },
      spec: { size: 1 },
    });
    expect(widgetKind).toMatchObject({
      singular: 'widget',
      namespaced: true,
      strategy: { hasStatus: true },
      sensitive: false,
    });
  });

  test('reports every cause with path and value', () => {
    const value = {
      apiVersion: 'test.sluice.dev/v2',
      metadata: { name: 'a', labels: { 'example.org/x': 'not ok!' } },
      spec: { size: 'big', color: 'pink', parts: [{ name: 'p' }, {}, 7] },
    };
    expect(thrownCauses(() => widgetKind.parse(value))).toEqual([
      'apiVersion: Unsupported value: "test.sluice.dev/v2": supported values: "test.sluice.dev/v1"',
      'metadata.labels[example.org/x]: Invalid value: "not ok!": must be at most 63 letters, digits, "-", "_" or ".", not at the ends',
      'spec.size: Invalid value: "big": expected number',
      'spec.color: Unsupported value: "pink": supported values: "red", "green", "blue"',
      'spec.parts[1].name: Required value',
      'spec.parts[2]: Invalid value: 7: expected object',
    ]);
    expect(() => widgetKind.parse(value)).toThrow(/^Widget\.test\.sluice\.dev "a" is invalid: \[apiVersion: /);
  });

  test.each([[null], ['text'], [[]], [7]])('%j is no object', (value) => {
    expect(thrownCauses(() => widgetKind.parse(value))[0]).toContain('expected object');
  });

  test('requires metadata and a name, unless one is generated or derived', () => {
    expect(thrownCauses(() => widgetKind.parse({ spec: {} }))).toEqual(['metadata.name: Required value']);
    expect(thrownCauses(() => widgetKind.parse({ metadata: {}, spec: {} }))).toEqual(['metadata.name: Required value']);
    expect(widgetKind.parse({ metadata: { generateName: 'a-' }, spec: {} }).object.metadata.name).toBe('');
    const spec = { packageName: 'p', repository: 'r', workspaceName: 'w' };
    expect(packageRevisionKind.complete({ metadata: {}, spec }).metadata.name).toBe('');
  });

  test('finds unknown fields and leaves them out, but not what servers write', () => {
    const { object, unknownFields } = widgetKind.parse({
      metadata: { name: 'a', creationTimestamp: null, managedFields: [{}], selfLink: '/x' },
      spec: { sise: 3, parts: [{ name: 'p', more: 1 }] },
      extra: {},
    });
    expect(unknownFields).toEqual([['spec', 'sise'], ['spec', 'parts', 0, 'more'], ['extra']]);
    expect(object.spec).toEqual({ size: 1, parts: [{ name: 'p' }] });
  });

  test('of a union the branch that fits best is reported', () => {
    const kind = defineKind({
      group: 'x',
      version: 'v1',
      kind: 'U',
      plural: 'us',
      description: 'A union.',
      spec: z.object({ of: z.union([z.object({ a: z.object({ b: z.string() }) }), z.string()]) }),
    });
    expect(thrownCauses(() => kind.parse({ metadata: { name: 'u' }, spec: { of: { a: { b: 1 } } } }))).toEqual([
      'spec.of.a.b: Invalid value: 1: expected string',
    ]);
    expect(thrownCauses(() => kind.parse({ metadata: { name: 'u' }, spec: { of: 5 } }))[0]).toContain(
      'spec.of: Invalid value: 5',
    );
  });
});

describe('the kinds', () => {
  test('have names of their own and documented specs', () => {
    const kinds = [...OBJECT_KINDS, ...PACKAGE_KINDS];
    const words = kinds.flatMap((kind) => [kind.plural, ...kind.shortNames].map((word) => `${word}.${kind.group}`));
    expect(new Set(words).size).toBe(words.length);
    for (const kind of kinds) expect(kind.description).toMatch(/\.$/);
  });

  test('show the columns that kubectl users of Porch know', () => {
    const usual = <Column extends { readonly priority?: number }>(columns: readonly Column[]) =>
      columns.filter(({ priority = 0 }) => priority === 0);
    const headers = (kind: { printerColumns: readonly { name: string; priority?: number }[] }) =>
      usual(kind.printerColumns)
        .map((column) => column.name)
        .join(', ');
    expect(headers(packageRevisionKind)).toBe('Name, Package, WorkspaceName, Revision, Latest, Lifecycle, Repository');
    expect(headers(packageRevisionResourcesKind)).toBe('Name, Package, WorkspaceName, Revision, Repository, Files');
    expect(headers(repositoryKind)).toBe('Name, Type, Content, Sync schedule, Deployment, Ready, Address, Age');
    const revision = packageRevisionKind.complete({
      metadata: { name: 'r.p.w', labels: { 'kpt.dev/latest-revision': 'true' } },
      spec: { packageName: 'p', repository: 'r', workspaceName: 'w', revision: 2, lifecycle: 'Published' },
    });
    expect(usual(packageRevisionKind.printerColumns).map((column) => column.value(revision))).toEqual([
      'r.p.w',
      'p',
      'w',
      2,
      true,
      'Published',
      'r',
    ]);
  });

  test.each([
    ['https://example.org/x.git', true],
    ['http://127.0.0.1:8080/x', true],
    ['http://localhost/x', true],
    ['http://[::1]:80/x', true],
    ['file:///srv/x', true],
    ['/srv/x', true],
    // The operator decides whether a host may be reached without encryption.
    ['http://example.org/x', true],
    ['http://127.0.0.1.example.org/x', true],
    ['http://localhost@example.org/x', false],
    ['https://user@example.org/x', false],
    ['https://example.org/x?token=secret', false],
    ['file://host/x', false],
    ['ssh://example.org/x', true],
    ['git@example.org:x', true],
    ['example.org:x', false],
    ['ssh://user:secret@example.org/x', false],
    ['ext::sh -c id', false],
    ['--upload-pack=id', false],
    ['srv/x', false],
    ['/srv/\nx', false],
    ['', false],
  ])('address %j of a repository: %s', (repo, fine) => {
    const parse = () => repositoryKind.complete({ metadata: { name: 'a' }, spec: { git: { repo } } });
    if (fine) expect(parse().spec.git).toEqual({ repo, branch: 'main', directory: '/' });
    else expect(thrownCauses(parse)[0]).toMatch(/^spec\.git\.repo: /);
  });

  test.each([
    ['', '/'],
    ['/', '/'],
    ['.', '/'],
    ['a/b', 'a/b'],
    ['/a//b/', 'a/b'],
    ['./a/./b', 'a/b'],
    ['..', undefined],
    ['a/../b', undefined],
    ['a/.git/b', undefined],
    ['.GIT', undefined],
    ['a\\b', undefined],
    ['a\0b', undefined],
  ])('directory %j is %j', (given, expected) => {
    expect(normalizeDirectory(given)).toBe(expected);
  });

  test.each([
    ['main', true],
    ['feature/x', true],
    ['v1.2', true],
    ['a..b', false],
    ['a b', false],
    ['-a', false],
    ['a/', false],
    ['a.lock', false],
    ['a.lock/b', false],
    ['@', false],
    ['a@{1}', false],
    ['a//b', false],
    ['a/.b', false],
    ['a~1', false],
    ['', false],
  ])('branch %j: %s', (name, expected) => {
    expect(isBranchName(name)).toBe(expected);
  });

  test('a policy without rules has the documented defaults', () => {
    expect(packagePolicyKind.complete({ metadata: { name: 'p' }, spec: {} }).spec).toEqual({
      selector: {},
      requiredGates: [],
      validatorConditions: [],
      givers: [],
      validFor: [],
      kptfileApprovals: false,
      pushMayGive: true,
      pushDenied: [],
      autoPropose: false,
      approval: { forbidSelfApproval: false, breakGlass: [], automatic: false, windows: [], freezes: [] },
      commitBudgetPerHour: 50,
      gateDeadlines: [],
    });
    const bad = {
      givers: [{ conditionType: 'a*b', actors: ['x'] }],
      gateDeadlines: [{ conditionType: 'x', after: '1 day' }],
    };
    expect(thrownCauses(() => packagePolicyKind.complete({ metadata: { name: 'p' }, spec: bad }))).toHaveLength(2);
  });

  test('a delivery target does nothing dangerous unless it is stated', () => {
    const spec = { selector: {}, git: { repo: '/srv/x' } };
    expect(deliveryTargetKind.complete({ metadata: { name: 'd' }, spec }).spec).toMatchObject({
      onRemoval: 'delete',
      allowSecrets: false,
      allowOutOfBand: false,
    });
  });

  test('prefixes are checked', () => {
    const spec = { networkInstance: { name: 'vpc' }, prefix: '10.0.0.0/24' };
    expect(ipPrefixKind.complete({ metadata: { name: 'p' }, spec }).spec.kind).toBe('network');
    for (const prefix of ['10.0.0.0', '10.0.0.0/33', '300.0.0.0/8', 'x'])
      expect(
        thrownCauses(() => ipClaimKind.complete({ metadata: { name: 'p' }, spec: { ...spec, prefix } }))[0],
      ).toMatch(/^spec\.prefix: /);
  });

  test('text in a secret is stored as bytes and read back', () => {
    const secret = secretKind.complete({
      metadata: { name: 's' },
      data: { user: 'YW5uYQ==', password: 'b2xk' },
      stringData: { password: 'pässword' },
    });
    expect(secret).not.toHaveProperty('stringData');
    expect(secretText(secret, 'user')).toBe('anna');
    expect(secretText(secret, 'password')).toBe('pässword');
    expect(secretText(secret, 'constructor')).toBeUndefined();
  });
});
