import { INIT, PORCH, revisionBody, useRepository } from './packages.ts';
import type { Place } from './place.ts';
import { useWidgets } from './widgets.ts';

/** A kind that the conventions apply to. */
export interface Subject {
  readonly group: string;
  readonly plural: string;
  readonly kind: string;
  path(...rest: string[]): string;
  /** An object as a client writes it. */
  body(name: string, metadata?: object): object;
  /** The name that the server gives it. */
  nameOf(name: string): string;
}

export function definedKind(place: Place): Subject {
  const widgets = useWidgets(place);
  return {
    ...{ group: widgets.group, plural: 'widgets', kind: 'Widget', path: widgets.path, nameOf: (name) => name },
    body: (name, metadata = {}) => widgets.body(name, {}, { metadata: { name, ...metadata } }),
  };
}

export function packageKind(place: Place): Subject {
  useRepository(place);
  return {
    ...{ group: 'porch.kpt.dev', plural: 'packagerevisions', kind: 'PackageRevision' },
    path: (...rest) => place.path(`${PORCH}/packagerevisions`, ...rest),
    body(name, metadata = {}) {
      const body = revisionBody(place, name, 'v1', INIT);
      return { ...body, metadata: { ...body.metadata, ...metadata } };
    },
    nameOf: (name) => `packages.${name}.v1`,
  };
}
