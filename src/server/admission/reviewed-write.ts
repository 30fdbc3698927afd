import { SluiceError } from '../../foundation/sluice-error.ts';
import { configMapKind } from '../../resource/kinds/core/config-map.ts';
import { OBJECT_KINDS } from '../../resource/kinds/index.ts';
import type { KubernetesObject, Stored } from '../../resource/object/object.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import type { User } from '../authentication/user.ts';
import type { PlannedWrite } from '../handlers/handler.ts';
import { type AdmissionRequest, readWrittenObject } from './admission-review.ts';

/** Those of `deploy/crds`, and ConfigMaps, which can list keys of users. A kube-apiserver checks all others itself. */
const REVIEWED_KINDS: readonly Kind[] = OBJECT_KINDS.filter(
  ({ group, kind }) => (group !== '' && !group.endsWith('.k8s.io')) || (group === '' && kind === configMapKind.kind),
);

/**
 * Deletes what a namespace contains that is being deleted, for a user who may delete the namespace. It has no rights on Repositories; to refuse
 * it would keep the namespace for ever.
 */
const NAMESPACE_CONTROLLER = 'system:serviceaccount:kube-system:namespace-controller';

const OPERATIONS = { CREATE: 'create', UPDATE: 'update', DELETE: 'delete' } as const;

/**
 * The write of a review, as the rules of admission take it; undefined for one that no rule is about. BadRequest if parts
 * are missing or contradict each other, which is refused: a rule must not be passed by leaving out what it reads.
 */
export function reviewedWrite(request: AdmissionRequest): PlannedWrite | undefined {
  const { operation, kind: gvk, subResource } = request;
  // By its kind: a sub-resource such as `scale` has objects of another one.
  const reviewed = REVIEWED_KINDS.find(({ group, kind }) => group === gvk.group && kind === gvk.kind);
  if (operation === 'CONNECT' || reviewed === undefined) return undefined;
  if (operation === 'DELETE' && request.userInfo.username === NAMESPACE_CONTROLLER) return undefined;
  if (reviewed.version !== gvk.version)
    throw new SluiceError(
      'BadRequest',
      `${gvk.kind} of version ${gvk.version} is not known here, only ${reviewed.version}; upgrade Sluice, or set matchPolicy: Equivalent`,
    );
  const old = operation === 'CREATE' ? undefined : objectOf(request, 'oldObject');
  const object = operation === 'DELETE' ? old : objectOf(request, 'object');
  return {
    ...{ user: userOf(request), operation: OPERATIONS[operation], kind: reviewed, subResource },
    object: object as KubernetesObject,
    old: old as Stored | undefined,
  };
}

/** The user as the cluster authenticated it. */
function userOf({ userInfo: { username, uid, groups, extra } }: AdmissionRequest): User {
  return { name: username, groups, ...(uid === '' ? {} : { uid }), ...(extra === undefined ? {} : { extra }) };
}

/** With the name and namespace of the request, which are those that the kube-apiserver has authorised. */
function objectOf(request: AdmissionRequest, field: 'object' | 'oldObject'): KubernetesObject {
  const { kind: gvk, name, namespace } = request;
  const value = request[field];
  if (value === undefined) throw new SluiceError('BadRequest', `request.${field} is missing`);
  const object = readWrittenObject(value, field);
  const { metadata } = object;
  const apiVersion = gvk.group === '' ? gvk.version : `${gvk.group}/${gvk.version}`;
  if (object.kind !== gvk.kind || object.apiVersion !== apiVersion)
    throw new SluiceError('BadRequest', `request.${field} is not of the kind in request.kind`);
  if ((metadata.namespace ?? '') !== namespace && metadata.namespace !== undefined)
    throw new SluiceError('BadRequest', `request.${field} is not in the namespace of the request`);
  if (name !== '' && metadata.name !== '' && metadata.name !== name)
    throw new SluiceError('BadRequest', `request.${field} does not have the name of the request`);
  const place = { name: metadata.name || name, ...(namespace === '' ? {} : { namespace }) };
  return { ...object, metadata: { ...metadata, ...place } };
}
