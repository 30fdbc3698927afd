import fc from 'fast-check';
import { expect, test } from 'vitest';
import { storedTarget } from '../../../test/support/delivered.ts';
import { runs } from '../../../test/support/runs.ts';
import { deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { packageDeliveryKind } from '../../resource/kinds/sluice/delivery/package-delivery.ts';
import {
  type DeliveredPackage,
  deliveredIn,
  isAbout,
  packageDeliveryName,
  packageDeliveryOf,
  packagesDigest,
  targetLabelValue,
} from './delivered-package.ts';

const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const LABEL_VALUE = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;
const spec = (path: string, target = 'edge') => ({ target, repository: 'apps', package: path });
const named = (path: string, target = 'edge') => packageDeliveryName(target, spec(path, target));

test('a name is readable and the same each time', () => {
  expect(named('net/UPF_1')).toMatch(/^edge\.net-upf-1-[0-9a-f]{32}$/);
  expect(named('net/UPF_1')).toBe(named('net/UPF_1'));
});

test('paths that become equal without special characters have different names', () => {
  const paths = ['net/upf', 'net-upf', 'net.upf', 'net_upf', 'NET/upf', '-net-upf-', 'ä', 'ö', '%', '.'];
  expect(new Set(paths.map((path) => named(path))).size).toBe(paths.length);
  const repositories = ['a', 'b'].map((repository) => packageDeliveryName('edge', { ...spec('web'), repository }));
  expect(new Set(repositories).size).toBe(2);
});

test('every name is a DNS sub-domain and every label a label', () => {
  const target = fc.stringMatching(/^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/).filter((name) => SUBDOMAIN.test(name));
  fc.assert(
    fc.property(target, fc.string({ minLength: 1, maxLength: 300, unit: 'binary' }), (name, path) => {
      expect(named(path, name)).toMatch(SUBDOMAIN);
      expect(named(path, name).length).toBeLessThanOrEqual(253);
      expect(targetLabelValue(name)).toMatch(LABEL_VALUE);
      expect(targetLabelValue(name).length).toBeLessThanOrEqual(63);
    }),
    { numRuns: runs(200) },
  );
});

test('a label is the name of the target, and long names with a common beginning have different ones', () => {
  expect(targetLabelValue('edge-east')).toBe('edge-east');
  const long = 'a'.repeat(60);
  expect(targetLabelValue(`${long}.one.east`)).not.toBe(targetLabelValue(`${long}.one.west`));
});

test('an object has its target as owner, and the kind accepts it', () => {
  const target = storedTarget(
    deliveryTargetKind.complete({ metadata: { name: 'edge' }, spec: { selector: {}, git: { repo: 'file:///x.git' } } }),
  );
  const one = { repository: 'apps', package: 'web', revision: 1, commit: 'c', tree: 't' };
  const object = packageDeliveryOf(target, one, 'clusters/web', '2030-01-01T00:00:00Z');
  expect(packageDeliveryKind.parse(object)).toEqual({ object, unknownFields: [] });
  expect(object.metadata).toMatchObject({
    labels: { 'sluice.dev/target': 'edge' },
    ownerReferences: [{ kind: 'DeliveryTarget', name: 'edge', uid: target.metadata.uid, controller: true }],
  });
});

test('an object records that its folder has changes of another writer, and nothing where it has none', () => {
  const target = storedTarget(
    deliveryTargetKind.complete({ metadata: { name: 'edge' }, spec: { selector: {}, git: { repo: 'file:///x.git' } } }),
  );
  const one = { repository: 'apps', package: 'web', revision: 1, commit: 'c', tree: 't' };
  for (const each of [one, { ...one, drifted: true as const }]) {
    const object = packageDeliveryOf(target, each, 'web', '2030-01-01T00:00:00Z');
    expect(packageDeliveryKind.parse(object)).toEqual({ object, unknownFields: [] });
    expect(deliveredIn(object)).toStrictEqual(each);
  }
});

test('the digest changes with each package', () => {
  const one = { repository: 'apps', package: 'web', revision: 1, commit: 'c', tree: 't' };
  const lists: (readonly DeliveredPackage[])[] = [
    ...[[], [one], [one, { ...one, package: 'db' }], [{ ...one, revision: 2 }], [{ ...one, commit: 'd' }]],
    [{ ...one, drifted: true }],
  ];
  expect(new Set(lists.map(packagesDigest)).size).toBe(lists.length);
  expect(packagesDigest([{ ...one }])).toBe(packagesDigest([one]));
});

test('the digest of a list that a reader keeps is computed once', () => {
  let reads = 0;
  const one = {
    ...{ repository: 'apps', package: 'web', commit: 'c', tree: 't' },
    get revision() {
      reads += 1;
      return 1;
    },
  };
  const list = [one];
  const digest = packagesDigest(list);
  expect(isAbout({ packagesDigest: digest }, list)).toBe(true);
  expect(isAbout({ packagesDigest: 'other' }, list)).toBe(false);
  expect(isAbout({}, list)).toBe(true);
  expect(reads).toBe(1);
});
