import { z } from 'zod';
import { isSluiceError, SluiceError } from '../foundation/sluice-error.ts';
import {
  apiVersionOf,
  type GroupVersionKind,
  groupVersionKindOf,
  type KubernetesObject,
} from '../resource/object/object.ts';
import { defineKind } from '../resource/schema/define-kind.ts';
import type { Kind } from '../resource/schema/kind.ts';
import type { HttpClient } from './http-client.ts';
import { versionPath } from './resource-path.ts';

const resourceList = z.object({
  resources: z
    .array(
      z.object({
        name: z.string(),
        kind: z.string(),
        namespaced: z.boolean(),
        verbs: z.array(z.string()).nullish(),
      }),
    )
    .nullish(),
});

/** A kind that a server serves, whichever it is. */
export interface ServedKind {
  readonly plural: string;
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
}

/**
 * The kinds that a server serves in a version of a group, by their names; none if it does not serve the version. Other errors as of the
 * client. Every user who proved who they are may read this.
 */
export async function readServedKinds(
  client: HttpClient,
  apiVersion: string,
  signal?: AbortSignal,
): Promise<ReadonlyMap<string, ServedKind>> {
  const path = versionPath(groupVersionOf(apiVersion));
  try {
    const { text } = await client.raw('GET', path, undefined, {
      accept: 'application/json',
      ...(signal === undefined ? {} : { signal }),
    });
    const { resources } = resourceList.parse(JSON.parse(text));
    // Sub-resources have the kind of another resource.
    const whole = (resources ?? []).filter(({ name }) => !name.includes('/'));
    return new Map(
      whole.map(({ name, kind, namespaced, verbs }) => [kind, { plural: name, namespaced, verbs: verbs ?? [] }]),
    );
  } catch (error) {
    if (isSluiceError(error, 'NotFound')) return new Map();
    if (isSluiceError(error)) throw error;
    throw new SluiceError('Unavailable', `the server responded to ${path} with what is no list of resources`, {
      cause: error,
    });
  }
}

/**
 * A kind of which only names, labels, annotations and `spec` of objects are kept. The server's rules apply to its objects: nothing is
 * validated.
 */
export function readOnlyKind(apiVersion: string, kind: string, { plural, namespaced }: ServedKind): Kind {
  const { group, version } = groupVersionOf(apiVersion);
  const fields = { spec: z.unknown() };
  const description = `${kind} of the cluster; Sluice reads it only.`;
  const defined = defineKind({ group, version, kind, plural, namespaced, description, fields }) as unknown as Kind;
  const parse = (value: unknown) => {
    const { metadata, spec } = value as Readonly<Record<string, unknown>>;
    const { managedFields: _managed, ...rest } = metadata as Readonly<Record<string, unknown>>;
    const object = {
      ...{ apiVersion, kind, metadata: rest },
      ...(spec === undefined ? {} : { spec }),
    };
    return { object: object as unknown as KubernetesObject, unknownFields: [] };
  };
  return { ...defined, parse, complete: (input) => parse(input).object };
}

/** Group and version of an apiVersion. InvalidInput for another form of one, such as `/v1`. */
function groupVersionOf(apiVersion: string): GroupVersionKind {
  const names = groupVersionKindOf({ apiVersion, kind: '' });
  if (apiVersionOf(names) === apiVersion) return names;
  throw new SluiceError('InvalidInput', `${JSON.stringify(apiVersion)} is no apiVersion such as v1 or example.com/v1`);
}
