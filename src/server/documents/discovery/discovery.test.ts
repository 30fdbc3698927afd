import { describe, expect, test } from 'vitest';
import { servedForTests } from '../testing.ts';
import { aggregatedDiscovery } from './aggregated-discovery.ts';
import { apiGroup, apiGroupList, apiResourceList, apiVersions } from './discovery.ts';
import { compareVersions, type ServedGroup, type ServedVersion, servedGroups } from './served.ts';
import { versionInfo } from './version-info.ts';

const groups = servedGroups(servedForTests);

function group(name: string): ServedGroup {
  return groups.find((candidate) => candidate.name === name) as ServedGroup;
}

function onlyVersion(name: string): ServedVersion {
  return group(name).versions[0] as ServedVersion;
}

describe('servedGroups', () => {
  test('keeps the order in which kinds are served, reviews last', () => {
    expect(groups.map(({ name }) => name)).toEqual([
      '',
      'test.sluice.dev',
      'authorization.k8s.io',
      'authentication.k8s.io',
    ]);
  });

  test('the most mature version is first', () => {
    const versions = ['v1alpha1', 'v2beta1', 'foo10', 'v1', 'v10', 'v1beta2', 'v1beta10', 'v2', 'foo1', 'v1alpha2'];
    expect(versions.sort(compareVersions)).toEqual([
      ...['v10', 'v2', 'v1', 'v2beta1', 'v1beta10', 'v1beta2', 'v1alpha2', 'v1alpha1', 'foo1', 'foo10'],
    ]);
  });
});

describe('discovery', () => {
  test('the core group has its own place', () => {
    expect(apiVersions(groups)).toEqual({ kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] });
    expect(apiVersions([]).versions).toEqual([]);
    expect(apiGroupList(groups).groups.map(({ name }) => name)).not.toContain('');
    const version = { groupVersion: 'test.sluice.dev/v1', version: 'v1' };
    expect(apiGroup(group('test.sluice.dev'))).toEqual({
      kind: 'APIGroup',
      apiVersion: 'v1',
      name: 'test.sluice.dev',
      versions: [version],
      preferredVersion: version,
    });
  });

  test('sub-resources are listed beside the resource, with their kind if it is of another group', () => {
    const list = apiResourceList(onlyVersion('test.sluice.dev'));
    expect(list.groupVersion).toBe('test.sluice.dev/v1');
    expect(list.resources).toEqual([
      {
        name: 'widgets',
        singularName: 'widget',
        namespaced: true,
        kind: 'Widget',
        verbs: ['get', 'list', 'patch'],
        shortNames: ['wd'],
      },
      { name: 'widgets/status', singularName: '', namespaced: true, kind: 'Widget', verbs: ['get', 'update'] },
      {
        name: 'widgets/token',
        singularName: '',
        namespaced: true,
        group: 'other.example',
        version: 'v1',
        kind: 'Token',
        verbs: ['create'],
      },
    ]);
  });

  test('reviews can be created and nothing else', () => {
    const { resources } = apiResourceList(onlyVersion('authorization.k8s.io'));
    expect(resources.map(({ name, namespaced, verbs }) => [name, namespaced, verbs])).toEqual([
      ['selfsubjectaccessreviews', false, ['create']],
      ['selfsubjectrulesreviews', false, ['create']],
      ['subjectaccessreviews', false, ['create']],
      ['localsubjectaccessreviews', true, ['create']],
    ]);
  });
});

test('aggregated discovery has everything in one response', () => {
  expect(aggregatedDiscovery([group('test.sluice.dev')], 'v2beta1')).toEqual({
    kind: 'APIGroupDiscoveryList',
    apiVersion: 'apidiscovery.k8s.io/v2beta1',
    metadata: {},
    items: [
      {
        metadata: { name: 'test.sluice.dev', creationTimestamp: null },
        versions: [
          {
            version: 'v1',
            freshness: 'Current',
            resources: [
              {
                resource: 'widgets',
                responseKind: { group: 'test.sluice.dev', version: 'v1', kind: 'Widget' },
                scope: 'Namespaced',
                singularResource: 'widget',
                verbs: ['get', 'list', 'patch'],
                shortNames: ['wd'],
                subresources: [
                  {
                    subresource: 'status',
                    responseKind: { group: 'test.sluice.dev', version: 'v1', kind: 'Widget' },
                    verbs: ['get', 'update'],
                  },
                  {
                    subresource: 'token',
                    responseKind: { group: 'other.example', version: 'v1', kind: 'Token' },
                    verbs: ['create'],
                  },
                ],
              },
            ],
          },
        ],
      },
    ],
  });
});

test('the version can be read by clients that compare versions', () => {
  const info = versionInfo('0.1.0-rc.1+dirty build', 'linux/arm64');
  expect(info.gitVersion).toMatch(/^v1\.\d+\.0\+sluice\.0\.1\.0-rc\.1-dirty-build$/);
  expect(info.gitVersion.startsWith(`v${info.major}.${info.minor}.`)).toBe(true);
});
