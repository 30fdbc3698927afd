import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import type { KubernetesObject } from '../../resource/object/object.ts';
import { resourceName } from '../../resource/storage/memory/object-rules.ts';
import type { ApiRequest } from '../request/api-request.ts';
import type { Services } from './handler.ts';

const NAMESPACES = { group: '', version: 'v1', resource: 'namespaces' };

/** No object is created in a namespace that does not exist or is being deleted. Where namespaces are no kind, all exist. */
export async function requireNamespace(
  request: ApiRequest,
  { resources }: Services,
  object: KubernetesObject,
): Promise<void> {
  const { info, resource, context } = request;
  const namespaces = resource.kind.namespaced ? resources.find(NAMESPACES) : undefined;
  if (namespaces === undefined) return;
  const name = info.namespace;
  let namespace: KubernetesObject;
  try {
    namespace = await namespaces.storage.get(context, { name });
  } catch (error) {
    if (!isSluiceError(error, 'NotFound')) throw error;
    throw new SluiceError('NotFound', error.message, { cause: error, details: { name, kind: 'namespaces' } });
  }
  if (!isTerminating(namespace)) return;
  throw new SluiceError(
    'Refused',
    `${resourceName(resource.kind)} ${JSON.stringify(object.metadata.name)} is forbidden: unable to create new content in namespace ${name} because it is being terminated`,
    {
      details: {
        causes: [
          {
            reason: 'NamespaceTerminating',
            message: `namespace ${name} is being terminated`,
            field: 'metadata.namespace',
          },
        ],
      },
    },
  );
}

function isTerminating({ metadata, status }: KubernetesObject): boolean {
  const phase = (status as { readonly phase?: unknown } | undefined)?.phase;
  return metadata.deletionTimestamp !== undefined || phase === 'Terminating';
}
