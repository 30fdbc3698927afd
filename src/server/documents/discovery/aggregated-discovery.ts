import { namesOf, type ServedGroup, type ServedResource } from './served.ts';

/** The versions that clients request; both have the same form. */
export const AGGREGATED_VERSIONS = ['v2', 'v2beta1'] as const;
export type AggregatedVersion = (typeof AGGREGATED_VERSIONS)[number];

/** Groups, versions and resources in one response: `/api` and `/apis` for clients that request it. */
export function aggregatedDiscovery(groups: readonly ServedGroup[], version: AggregatedVersion) {
  return {
    kind: 'APIGroupDiscoveryList',
    apiVersion: `apidiscovery.k8s.io/${version}`,
    metadata: {},
    items: groups.map((group) => ({
      metadata: { name: group.name, creationTimestamp: null },
      versions: group.versions.map((served) => ({
        version: served.version,
        resources: served.resources.map(resourceEntry),
        freshness: 'Current',
      })),
    })),
  };
}

function resourceEntry(resource: ServedResource) {
  const { plural, singular, shortNames, categories, subResources, verbs } = resource;
  return {
    resource: plural,
    responseKind: namesOf(resource),
    scope: resource.namespaced ? 'Namespaced' : 'Cluster',
    singularResource: singular,
    verbs,
    ...(shortNames.length === 0 ? {} : { shortNames }),
    ...(categories.length === 0 ? {} : { categories }),
    ...(subResources.length === 0
      ? {}
      : {
          subresources: subResources.map((sub) => ({
            subresource: sub.name,
            responseKind: sub.kind,
            verbs: sub.verbs,
          })),
        }),
  };
}
