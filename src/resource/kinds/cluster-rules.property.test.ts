import fc from 'fast-check';
import { load } from 'js-yaml';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { isSluiceError } from '../../foundation/sluice-error.ts';
import type { InvalidObjectDetails } from '../object/invalid-object.ts';
import type { KubernetesObject } from '../object/object.ts';
import type { Kind } from '../schema/kind.ts';
import { customKind } from './apiextensions/custom-kind.ts';
import { customResourceDefinitionKind } from './apiextensions/custom-resource-definition.ts';
import { crdFiles } from './crd-files.ts';
import { ipPrefixKind } from './ipam/ipam.ts';
import { packageVariantKind } from './porch/package-variant.ts';
import { packageVariantSetKind } from './porch/package-variant-set.ts';
import { repositoryKind } from './porch/repository.ts';
import { functionPolicyKind } from './sluice/function-policy.ts';
import { notificationKind } from './sluice/notification.ts';
import { packagePolicyKind } from './sluice/package-policy.ts';

const repository = made(repositoryKind as Kind);
const prefix = made(ipPrefixKind as Kind);
const policy = made(packagePolicyKind as Kind);
const functions = made(functionPolicyKind as Kind);
const notification = made(notificationKind as Kind);
const variant = made(packageVariantKind as Kind);
const set = made(packageVariantSetKind as Kind);

/** A kind as Sluice defines it, and as its definition in a cluster does. */
function made(kind: Kind): { readonly own: Kind; readonly inCluster: Kind } {
  const text = crdFiles().get(`${kind.plural}.${kind.group}.yaml`) ?? '';
  const definition = customResourceDefinitionKind.parse(load(text)).object;
  return { own: kind, inCluster: customKind(definition, kind.version) as Kind };
}

function problems(kind: Kind, spec: object): readonly string[] {
  const object = { metadata: { name: 'a' }, spec };
  try {
    kind.parse(object);
    return [];
  } catch (error) {
    if (!isSluiceError(error, 'InvalidInput')) throw error;
    return (error.details as InvalidObjectDetails).causes.map(({ field }) => field);
  }
}

const git = (part: object) => ({ git: { repo: 'https://git.example.com/a.git', ...part } });
const url = 'https://hooks.example.com/in';
const webhook = (part: object) => ({ events: [{}], webhook: part });
const clone = (part: object) => ({
  ...{ upstream: { repo: 'a', package: 'b' }, downstream: { repo: 'c', package: 'b' } },
  ...part,
});
const targets = (...list: object[]) => ({ upstream: { repo: 'a', package: 'b' }, targets: list });
const from = (template: object) => targets({ repositories: [{ name: 'a' }], template });
const rule = (part: object) => ({ rules: [{ image: 'set-labels', ...part }] });

describe('a definition in a cluster refuses what Sluice refuses', () => {
  test.each([
    ['no form of an address', repository, git({ repo: 'git.example.com/a.git' })],
    ['another scheme', repository, git({ repo: 'ftp://git.example.com/a.git' })],
    ['a hosted repository with a path', repository, git({ repo: 'sluice:///a/b.git' })],
    ['an empty address', repository, git({ repo: '' })],
    ['a control character', repository, git({ repo: 'https://git.example.com/a\n.git' })],
    ['a password', repository, git({ repo: 'https://me:secret@git.example.com/a.git' })],
    ['a query', repository, git({ repo: 'https://git.example.com/a.git?x=1' })],
    ['a branch with a space', repository, git({ branch: 'no branch' })],
    ['a branch with two dots', repository, git({ branch: 'a..b' })],
    ['no branch', repository, git({ branch: '' })],
    ['a lock as a branch', repository, git({ branch: 'a.lock' })],
    ['a directory above', repository, git({ directory: 'a/../../b' })],
    ['the directory of git', repository, git({ directory: '/a/.GIT/b' })],
    ['no prefix', prefix, { networkInstance: { name: 'v' }, prefix: '10.0.0.0' }],
    ['two actions', functions, rule({ forbid: 'no', exec: 'x' })],
    ['no action', functions, rule({})],
    ['no receiver', notification, { events: [{}] }],
    ['two receivers', notification, { ...webhook({ url }), commitStatus: { secretRef: { name: 'a' } } }],
    ['no address of a receiver', notification, webhook({})],
    ['two addresses of a receiver', notification, webhook({ url, urlSecretRef: { name: 'a' } })],
    ['a password for a receiver', notification, webhook({ url: 'https://me:secret@hooks.example.com/in' })],
    ['another scheme for a receiver', notification, webhook({ url: 'ftp://hooks.example.com/in' })],
    ['no upstream', variant, { downstream: { repo: 'c', package: 'b' } }],
    ['no package of the upstream', variant, clone({ upstream: { repo: 'a' } })],
    ['an empty repository', variant, clone({ downstream: { repo: '', package: 'b' } })],
    ['another adoption policy', variant, clone({ adoptionPolicy: 'adopt' })],
    ['another deletion policy', variant, clone({ deletionPolicy: 'Delete' })],
    ['a computed key', variant, clone({ packageContext: { data: { name: 'x' } } })],
    ['a computed key to remove', variant, clone({ packageContext: { removeKeys: ['a', 'package-path'] } })],
    ['a function with a dot', variant, clone({ pipeline: { mutators: [{ image: 'a', name: 'a.b' }] } })],
    ['an injector without a name', variant, clone({ injectors: [{ kind: 'ConfigMap' }] })],
    ['an injector with an empty name', variant, clone({ injectors: [{ name: '' }] })],
    ['no target', set, targets()],
    ['a target without a form', set, targets({})],
    ['a target with two forms', set, targets({ repositories: [{ name: 'a' }], repositorySelector: {} })],
    ['no repositories', set, targets({ repositories: [] })],
    ['no kind of objects', set, targets({ objectSelector: { apiVersion: 'v1' } })],
    ['two repositories', set, from({ downstream: { repo: 'a', repoExpr: "'b'" } })],
    ['two keys', set, from({ labelExprs: [{ key: 'a', keyExpr: "'b'", value: 'c' }] })],
    ['an injector with two names', set, from({ injectors: [{ name: 'a', nameExpr: "'b'" }] })],
    ['an injector of a set without a name', set, from({ injectors: [{ kind: 'ConfigMap' }] })],
    ['no targets permitted', set, { ...targets({ repositories: [{ name: 'a' }] }), maxTargets: 0 }],
    ['no duration', policy, { validFor: [{ conditionType: 'a', duration: '1 day' }] }],
  ])('%s', (_what, { own, inCluster }, spec) => {
    expect(problems(own, spec)).not.toEqual([]);
    expect(problems(inCluster, spec)).toEqual(problems(own, spec));
  });
});

test('what identifies a Repository cannot be removed, to be set to another value later', () => {
  const definition = repository.inCluster;
  const whole = (spec: object) => definition.parse({ metadata: { name: 'a' }, spec }).object as KubernetesObject;
  const causes = definition.strategy.validateUpdate(whole(git({})), whole({ type: 'git' }));
  expect(causes.map(({ message }) => message)).toEqual([expect.stringContaining('git.repo is immutable')]);
  expect(definition.strategy.validateUpdate(whole({ type: 'git' }), whole(git({})))).toEqual([]);
});

test('a definition in a cluster accepts what Sluice accepts', () => {
  const part = (...texts: string[]) => fc.constantFrom(...texts);
  const address = fc
    .array(
      part(
        ...['https:', 'http:', 'ssh:', 'file:', 'sluice:', 'HTTPS:', '/', '//', '///', 'git', '@', ':', 'example.com'],
        ...['[::1]', '.git', '~', '%20', '?', '#', 'a', 'ä', ' ', '\\', '..', '8080', '-', '\n'],
      ),
      { maxLength: 8 },
    )
    .map((parts) => parts.join(''));
  const name = fc
    .array(part('a', 'B', '/', '.', '..', '@', '{', '~', ' ', '.lock', '.git', '-', '\\', 'ä', '\t', '*'), {
      maxLength: 6,
    })
    .map((parts) => parts.join(''));
  fc.assert(
    fc.property(address, name, name, (repo, branch, directory) => {
      for (const spec of [git({ repo }), git({ branch }), git({ directory })]) {
        if (problems(repository.own, spec).length === 0)
          expect(problems(repository.inCluster, spec), JSON.stringify(spec)).toEqual([]);
      }
    }),
    { numRuns: runs(300) },
  );
  for (const text of ['10.0.0.0/24', '2001:db8::/32', '::ffff:10.0.0.0/100', '0x0a.1.1.1/8', 'fe80::1%eth0/64'])
    if (problems(prefix.own, { networkInstance: { name: 'v' }, prefix: text }).length === 0)
      expect(problems(prefix.inCluster, { networkInstance: { name: 'v' }, prefix: text }), text).toEqual([]);
});
