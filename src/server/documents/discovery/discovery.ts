import { apiVersionOf } from '../../../resource/object/object.ts';
import type { ServedGroup, ServedVersion } from './served.ts';

/** `/api`: the versions of the core group. */
export function apiVersions(groups: readonly ServedGroup[]) {
  const core = groups.find((group) => group.name === '');
  return {
    kind: 'APIVersions',
    versions: core?.versions.map(({ version }) => version) ?? [],
    serverAddressByClientCIDRs: [],
  };
}

/** `/apis`: every group but the core one. */
export function apiGroupList(groups: readonly ServedGroup[]) {
  return {
    kind: 'APIGroupList',
    apiVersion: 'v1',
    groups: groups.filter((group) => group.name !== '').map(groupFields),
  };
}

/** `/apis/<group>`. */
export function apiGroup(group: ServedGroup) {
  return { kind: 'APIGroup', apiVersion: 'v1', ...groupFields(group) };
}

function groupFields(group: ServedGroup) {
  const versions = group.versions.map((served) => ({ groupVersion: apiVersionOf(served), version: served.version }));
  return { name: group.name, versions, preferredVersion: versions[0] };
}

/** `/api/v1` and `/apis/<group>/<version>`: resources, each followed by its sub-resources. */
export function apiResourceList(served: ServedVersion) {
  const resources = served.resources.flatMap((resource) => {
    const { plural, singular, namespaced, kind, verbs, shortNames, categories } = resource;
    const main = {
      ...{ name: plural, singularName: singular, namespaced, kind, verbs },
      ...(shortNames.length === 0 ? {} : { shortNames }),
      ...(categories.length === 0 ? {} : { categories }),
    };
    const subResources = resource.subResources.map((sub) => ({
      name: `${plural}/${sub.name}`,
      singularName: '',
      namespaced,
      ...(apiVersionOf(sub.kind) === apiVersionOf(served) ? {} : { group: sub.kind.group, version: sub.kind.version }),
      kind: sub.kind.kind,
      verbs: sub.verbs,
    }));
    return [main, ...subResources];
  });
  return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion: apiVersionOf(served), resources };
}
